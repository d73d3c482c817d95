SELECT
  *
FROM (
  SELECT
    `t2`.`batch`,
    `t2`.`arm`,
    COUNT(*) AS `n`,
    COUNT(`t2`.`known_sum`) AS `known`,
    COALESCE(SUM(`t2`.`moment_0_1`), 0) AS `moment_0_1`,
    COALESCE(SUM(`t2`.`moment_0_2`), 0) AS `moment_0_2`,
    COALESCE(SUM(`t2`.`moment_0_3`), 0) AS `moment_0_3`,
    COALESCE(SUM(`t2`.`nonzero`), 0) AS `nonzero`,
    COALESCE(SUM(`t2`.`product_0_0_0_2`), 0) AS `product_0_0_0_2`,
    COALESCE(SUM(`t2`.`product_0_0_1_2`), 0) AS `product_0_0_1_2`,
    COALESCE(SUM(`t2`.`product_0_0_2_2`), 0) AS `product_0_0_2_2`,
    COALESCE(SUM(`t2`.`product_0_1_1_2`), 0) AS `product_0_1_1_2`,
    COALESCE(SUM(`t2`.`product_0_1_2_2`), 0) AS `product_0_1_2_2`,
    COALESCE(SUM(`t2`.`product_0_2_2_2`), 0) AS `product_0_2_2_2`,
    COALESCE(SUM(`t2`.`positive_0`), 0) AS `positive_0`,
    COALESCE(SUM(`t2`.`known_sum`), 0) AS `known_sum`,
    MIN(`t2`.`__further_0`) AS `least__further_0`,
    MIN(`t2`.`__share_0`) AS `least__share_0`,
    MIN(`t2`.`__share_1`) AS `least__share_1`,
    MAX(`t2`.`__share_0`) AS `most__share_0`,
    MAX(`t2`.`__share_1`) AS `most__share_1`
  FROM (
    SELECT
      `t1`.`batch`,
      `t1`.`arm`,
      `t1`.`__reward`,
      `t1`.`__share_0`,
      `t1`.`__share_1`,
      `t1`.`__further_0`,
      `t1`.`__propensity`,
      `t1`.`__further_0__whole`,
      `t1`.`__reward` - 10.0 AS `moment_0_1`,
      (
        `t1`.`__reward` - 10.0
      ) * (
        `t1`.`__reward` - 10.0
      ) AS `moment_0_2`,
      (
        `t1`.`__reward` - 10.0
      ) * (
        `t1`.`__reward` - 10.0
      ) * (
        `t1`.`__reward` - 10.0
      ) AS `moment_0_3`,
      CASE WHEN `t1`.`__reward` <> 0.0 THEN 1.0 ELSE 0.0 END AS `nonzero`,
      `t1`.`__further_0` - 0.0 AS `product_0_0_0_2`,
      (
        `t1`.`__reward` - 10.0
      ) * (
        `t1`.`__further_0` - 0.0
      ) AS `product_0_0_1_2`,
      (
        `t1`.`__further_0` - 0.0
      ) * (
        `t1`.`__further_0` - 0.0
      ) AS `product_0_0_2_2`,
      (
        `t1`.`__reward` - 10.0
      ) * (
        `t1`.`__reward` - 10.0
      ) * (
        `t1`.`__further_0` - 0.0
      ) AS `product_0_1_1_2`,
      (
        `t1`.`__reward` - 10.0
      ) * (
        `t1`.`__further_0` - 0.0
      ) * (
        `t1`.`__further_0` - 0.0
      ) AS `product_0_1_2_2`,
      (
        `t1`.`__further_0` - 0.0
      ) * (
        `t1`.`__further_0` - 0.0
      ) * (
        `t1`.`__further_0` - 0.0
      ) AS `product_0_2_2_2`,
      CASE WHEN `t1`.`__further_0` > 0.0 THEN 1.0 ELSE 0.0 END AS `positive_0`,
      `t1`.`__reward` + `t1`.`__share_0` + `t1`.`__share_1` + `t1`.`__further_0` AS `known_sum`
    FROM (
      SELECT
        DATE_TRUNC('day', `t0`.`at`) AS `batch`,
        `t0`.`arm`,
        `t0`.`y` AS `__reward`,
        `t0`.`propensity_a` AS `__share_0`,
        `t0`.`propensity_b` AS `__share_1`,
        CAST(CASE
          WHEN (
            `t0`.`orders` <= 9007199254740992
          )
          AND (
            `t0`.`orders` >= -9007199254740992
          )
          THEN `t0`.`orders`
          ELSE NULL
        END AS DOUBLE) AS `__further_0`,
        CASE
          WHEN `t0`.`arm` = 'b'
          THEN `t0`.`propensity_b`
          ELSE CASE WHEN `t0`.`arm` = 'a' THEN `t0`.`propensity_a` ELSE NULL END
        END AS `__propensity`,
        `t0`.`orders` AS `__further_0__whole`
      FROM `log` AS `t0`
    ) AS `t1`
  ) AS `t2`
  GROUP BY
    1,
    2
) AS `t3`
