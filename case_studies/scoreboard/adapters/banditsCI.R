# banditsCI: variance-stabilising weights of IPW scores, from the snapshot of its repository, as its README does.
for (file in c("errors.R", "experiment_utils.R", "adaptive_utils.R"))
  source(file.path(snapshots, "banditsCI", "R", file))

interval <- function(log, target) {
  rounds <- length(log$arm)
  scores <- aw_scores(ws = log$arm + 1, yobs = log$reward, K = log$n_arms,
                      balwts = calculate_balwts(log$arm + 1, log$p))
  always <- function(arm) { rule <- matrix(0, rounds, log$n_arms); rule[, arm + 1] <- 1; rule }
  rule <- if (target == "policy") log$policy else always(if (target == "contrast") 1 else log$about)
  found <- output_estimates(
    policy1 = list(rule), policy0 = if (target == "contrast") always(0), gammahat = scores, probs_array = log$p,
    uniform = FALSE, non_contextual_minvar = FALSE, contextual_minvar = FALSE, contextual_stablevar = FALSE,
    non_contextual_twopoint = FALSE)[[1]]["non_contextual_stablevar", ]
  found[["estimate"]] + c(-1, 1) * qnorm(.975) * found[["std.error"]]
}
