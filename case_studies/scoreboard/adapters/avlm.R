# avlm: an anytime-valid linear model, from the snapshot of its repository; its g is best at the log's length.
for (file in list.files(file.path(snapshots, "avlm", "R"), full.names = TRUE)) source(file)

interval <- function(log, target) {
  rows <- data.frame(y = log$reward, arm = factor(log$arm, levels = seq_len(log$n_arms) - 1))
  fit <- lm(if (target == "contrast") y ~ arm else y ~ 0 + arm, rows)
  found <- confint(av(fit, g = optimal_g(nrow(rows), log$n_arms, .05)))
  found[if (target == "contrast") 2 else log$about + 1, ]
}
