# Run an adapter in R on the logs of one cell: Rscript work.R ADAPTER ROWS OUT TARGET ARMS SECONDS MOST SNAPSHOTS.
# A row of OUT is a log: the interval's ends, seconds of processor time, whether it warned, and what was refused.
told <- commandArgs(trailingOnly = TRUE)
snapshots <- told[8]
source(told[1])
rows <- as.data.frame(data.table::fread(told[2]))
target <- told[4]
arms <- as.integer(told[5])
most <- as.integer(told[7])

as_log <- function(part) {
  chances <- paste0("p", seq_len(arms) - 1)
  rules <- paste0("policy", seq_len(arms) - 1)
  list(arm = part$arm, reward = part$reward, n_arms = arms, about = part$about[1], unit = part$unit,
       chosen = part$chosen, p = if (all(chances %in% names(part))) as.matrix(part[, chances]),
       policy = if (all(rules %in% names(part))) as.matrix(part[, rules]))
}

parts <- split(rows, rows$log)
found <- list()
runs <- min(most, length(parts))
number <- 0
while (number < runs) {
  number <- number + 1
  warned <- FALSE
  refused <- ""
  start <- proc.time()
  ends <- tryCatch(
    withCallingHandlers(as.numeric(interval(as_log(parts[[number]]), target)),
                        warning = function(w) { warned <<- TRUE; invokeRestart("muffleWarning") }),
    error = function(e) { refused <<- substr(conditionMessage(e), 1, 300); c(NA, NA) })
  seconds <- sum((proc.time() - start)[1:2])
  found[[number]] <- data.frame(log = number - 1, low = ends[1], high = ends[2], seconds = seconds,
                                warned = warned, refused = refused)
  if (number == 10) {
    each <- median(sapply(found, function(one) one$seconds))
    if (each > .003) runs <- min(runs, max(200, floor(as.numeric(told[6]) / each)))
  }
}
data.table::fwrite(do.call(rbind, found), told[3])
