# estimatr: lm_robust with HC2 errors, by unit (CR2) where units repeat; weights of one over the chance where known.
suppressMessages(library(estimatr))

interval <- function(log, target) {
  rows <- data.frame(y = log$reward, arm = factor(log$arm, levels = seq_len(log$n_arms) - 1))
  rows$w <- if (is.null(log$chosen)) 1 else 1 / log$chosen
  formula <- if (target == "contrast") y ~ arm else y ~ 0 + arm
  fit <- if (is.null(log$unit)) lm_robust(formula, rows, weights = w)
         else { rows$unit <- log$unit; lm_robust(formula, rows, weights = w, clusters = unit) }
  row <- if (target == "contrast") 2 else log$about + 1
  c(fit$conf.low[[row]], fit$conf.high[[row]])
}
