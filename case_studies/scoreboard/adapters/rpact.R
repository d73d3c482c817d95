# rpact: O'Brien and Fleming's boundary for five looks; the repeated interval at the last one.
suppressMessages(library(rpact))

interval <- function(log, target) {
  looks <- 5
  stage <- ceiling(seq_along(log$arm) * looks / length(log$arm))
  by <- function(arm, f) sapply(seq_len(looks), function(s) f(log$reward[stage == s & log$arm == arm]))
  told <- getDataset(n1 = by(1, length), n2 = by(0, length), means1 = by(1, mean), means2 = by(0, mean),
                     stDevs1 = by(1, sd), stDevs2 = by(0, sd))
  design <- getDesignGroupSequential(kMax = looks, typeOfDesign = "asOF", sided = 2, alpha = .05)
  utils::capture.output(found <- getRepeatedConfidenceIntervals(design = design, dataInput = told))
  found[, looks]
}
