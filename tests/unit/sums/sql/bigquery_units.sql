SELECT
  COALESCE(SUM(`t4`.`one`), 0) AS `units`,
  COALESCE(SUM(`t4`.`n`), 0) AS `rounds`,
  COALESCE(SUM(`t4`.`n` * `t4`.`n`), 0) AS `pair_0_0`,
  COALESCE(SUM(`t4`.`n` * `t4`.`inverse_0`), 0) AS `pair_0_1`,
  COALESCE(SUM(`t4`.`n` * `t4`.`inverse_1`), 0) AS `pair_0_2`,
  COALESCE(SUM(`t4`.`n` * `t4`.`weighted_0`), 0) AS `pair_0_3`,
  COALESCE(SUM(`t4`.`n` * `t4`.`weighted_1`), 0) AS `pair_0_4`,
  COALESCE(SUM(`t4`.`inverse_0` * `t4`.`inverse_0`), 0) AS `pair_1_1`,
  COALESCE(SUM(`t4`.`inverse_0` * `t4`.`inverse_1`), 0) AS `pair_1_2`,
  COALESCE(SUM(`t4`.`inverse_0` * `t4`.`weighted_0`), 0) AS `pair_1_3`,
  COALESCE(SUM(`t4`.`inverse_0` * `t4`.`weighted_1`), 0) AS `pair_1_4`,
  COALESCE(SUM(`t4`.`inverse_1` * `t4`.`inverse_1`), 0) AS `pair_2_2`,
  COALESCE(SUM(`t4`.`inverse_1` * `t4`.`weighted_0`), 0) AS `pair_2_3`,
  COALESCE(SUM(`t4`.`inverse_1` * `t4`.`weighted_1`), 0) AS `pair_2_4`,
  COALESCE(SUM(`t4`.`weighted_0` * `t4`.`weighted_0`), 0) AS `pair_3_3`,
  COALESCE(SUM(`t4`.`weighted_0` * `t4`.`weighted_1`), 0) AS `pair_3_4`,
  COALESCE(SUM(`t4`.`weighted_1` * `t4`.`weighted_1`), 0) AS `pair_4_4`,
  COALESCE(SUM(`t4`.`had_0`), 0) AS `had_0`,
  COALESCE(SUM(`t4`.`events_0`), 0) AS `events_0`,
  COALESCE(SUM(`t4`.`others_0`), 0) AS `others_0`,
  COALESCE(SUM(`t4`.`had_0` * `t4`.`n` * `t4`.`n`), 0) AS `squares_0`,
  COALESCE(SUM(`t4`.`had_0` * `t4`.`n` * `t4`.`n` * `t4`.`n` * `t4`.`n`), 0) AS `fourths_0`,
  COALESCE(SUM(`t4`.`had_1`), 0) AS `had_1`,
  COALESCE(SUM(`t4`.`events_1`), 0) AS `events_1`,
  COALESCE(SUM(`t4`.`others_1`), 0) AS `others_1`,
  COALESCE(SUM(`t4`.`had_1` * `t4`.`n` * `t4`.`n`), 0) AS `squares_1`,
  COALESCE(SUM(`t4`.`had_1` * `t4`.`n` * `t4`.`n` * `t4`.`n` * `t4`.`n`), 0) AS `fourths_1`,
  COALESCE(SUM(`t4`.`mean`), 0) AS `mean_1`,
  COALESCE(SUM(`t4`.`mean` * `t4`.`mean`), 0) AS `mean_2`,
  COALESCE(SUM(`t4`.`mean` * `t4`.`mean` * `t4`.`mean`), 0) AS `mean_3`,
  COALESCE(SUM(`t4`.`switched`), 0) AS `switched`,
  COALESCE(SUM(`t4`.`moved`), 0) AS `moved`,
  COALESCE(SUM(`t4`.`least_log`), 0) AS `least_log`,
  COALESCE(SUM(`t4`.`unnamed`), 0) AS `unnamed`,
  COALESCE(SUM(`t4`.`inexact`), 0) AS `inexact`
FROM (
  SELECT
    `t3`.`unit`,
    `t3`.`rows`,
    `t3`.`above`,
    `t3`.`inverse_0`,
    `t3`.`inverse_1`,
    `t3`.`weighted_0`,
    `t3`.`weighted_1`,
    CASE WHEN `t3`.`had_0` > 0.5 THEN 1.0 ELSE 0.0 END AS `had_0`,
    CASE WHEN `t3`.`had_1` > 0.5 THEN 1.0 ELSE 0.0 END AS `had_1`,
    CASE WHEN `t3`.`events_0` > 0.5 THEN 1.0 ELSE 0.0 END AS `events_0`,
    CASE WHEN `t3`.`events_1` > 0.5 THEN 1.0 ELSE 0.0 END AS `events_1`,
    `t3`.`least`,
    `t3`.`most`,
    CASE WHEN (
      `t3`.`had_0` - `t3`.`events_0`
    ) > 0.5 THEN 1.0 ELSE 0.0 END AS `others_0`,
    CASE WHEN (
      `t3`.`had_1` - `t3`.`events_1`
    ) > 0.5 THEN 1.0 ELSE 0.0 END AS `others_1`,
    1.0 AS `one`,
    CAST(`t3`.`rows` AS FLOAT64) AS `n`,
    ieee_divide(`t3`.`above`, CAST(`t3`.`rows` AS FLOAT64)) AS `mean`,
    CASE
      WHEN (
        CASE WHEN `t3`.`had_0` > 0.5 THEN 1.0 ELSE 0.0 END + CASE WHEN `t3`.`had_1` > 0.5 THEN 1.0 ELSE 0.0 END
      ) > 1.5
      THEN 1.0
      ELSE 0.0
    END AS `switched`,
    CASE WHEN (
      `t3`.`most` - `t3`.`least`
    ) > 1e-09 THEN 1.0 ELSE 0.0 END AS `moved`,
    CASE
      WHEN `t3`.`least` < 0
      THEN CAST('NaN' AS FLOAT64)
      WHEN `t3`.`least` = 0
      THEN CAST('-Infinity' AS FLOAT64)
      ELSE LOG(`t3`.`least`, 2.718281828459045)
    END AS `least_log`,
    CASE WHEN `t3`.`unit` IS NULL THEN CAST(`t3`.`rows` AS FLOAT64) ELSE 0.0 END AS `unnamed`,
    0.0 AS `inexact`
  FROM (
    SELECT
      `t2`.`unit`,
      COUNT(*) AS `rows`,
      COALESCE(SUM(`t2`.`above`), 0) AS `above`,
      COALESCE(SUM(`t2`.`inverse_0`), 0) AS `inverse_0`,
      COALESCE(SUM(`t2`.`inverse_1`), 0) AS `inverse_1`,
      COALESCE(SUM(`t2`.`weighted_0`), 0) AS `weighted_0`,
      COALESCE(SUM(`t2`.`weighted_1`), 0) AS `weighted_1`,
      COALESCE(SUM(`t2`.`had_0`), 0) AS `had_0`,
      COALESCE(SUM(`t2`.`had_1`), 0) AS `had_1`,
      COALESCE(SUM(`t2`.`events_0`), 0) AS `events_0`,
      COALESCE(SUM(`t2`.`events_1`), 0) AS `events_1`,
      MIN(`t2`.`__propensity`) AS `least`,
      MAX(`t2`.`__propensity`) AS `most`
    FROM (
      SELECT
        `t1`.`unit`,
        `t1`.`arm`,
        `t1`.`__reward`,
        `t1`.`__share_0`,
        `t1`.`__share_1`,
        `t1`.`__propensity`,
        `t1`.`__reward` - 10.0 AS `above`,
        CASE WHEN `t1`.`arm` = 'a' THEN ieee_divide(1.0, `t1`.`__propensity`) ELSE 0.0 END AS `inverse_0`,
        CASE
          WHEN `t1`.`arm` = 'a'
          THEN ieee_divide(`t1`.`__reward` - 10.0, `t1`.`__propensity`)
          ELSE 0.0
        END AS `weighted_0`,
        CASE WHEN `t1`.`arm` = 'a' THEN 1.0 ELSE 0.0 END AS `had_0`,
        CASE
          WHEN (
            `t1`.`arm` = 'a'
          ) AND (
            `t1`.`__reward` <> 0.0
          )
          THEN 1.0
          ELSE 0.0
        END AS `events_0`,
        CASE WHEN `t1`.`arm` = 'b' THEN ieee_divide(1.0, `t1`.`__propensity`) ELSE 0.0 END AS `inverse_1`,
        CASE
          WHEN `t1`.`arm` = 'b'
          THEN ieee_divide(`t1`.`__reward` - 10.0, `t1`.`__propensity`)
          ELSE 0.0
        END AS `weighted_1`,
        CASE WHEN `t1`.`arm` = 'b' THEN 1.0 ELSE 0.0 END AS `had_1`,
        CASE
          WHEN (
            `t1`.`arm` = 'b'
          ) AND (
            `t1`.`__reward` <> 0.0
          )
          THEN 1.0
          ELSE 0.0
        END AS `events_1`
      FROM (
        SELECT
          `t0`.`user` AS `unit`,
          `t0`.`arm`,
          `t0`.`y` AS `__reward`,
          `t0`.`propensity_a` AS `__share_0`,
          `t0`.`propensity_b` AS `__share_1`,
          CASE
            WHEN `t0`.`arm` = 'b'
            THEN `t0`.`propensity_b`
            ELSE CASE WHEN `t0`.`arm` = 'a' THEN `t0`.`propensity_a` ELSE NULL END
          END AS `__propensity`
        FROM `log` AS `t0`
      ) AS `t1`
    ) AS `t2`
    GROUP BY
      1
  ) AS `t3`
) AS `t4`
