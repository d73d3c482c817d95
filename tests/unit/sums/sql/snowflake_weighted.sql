SELECT
  *
FROM (
  SELECT
    "t3"."batch",
    "t3"."arm",
    COUNT(*) AS "n",
    COUNT("t3"."known_sum") AS "known",
    COALESCE(SUM("t3"."moment_0_1"), 0) AS "moment_0_1",
    COALESCE(SUM("t3"."moment_0_2"), 0) AS "moment_0_2",
    COALESCE(SUM("t3"."moment_0_3"), 0) AS "moment_0_3",
    COALESCE(SUM("t3"."nonzero"), 0) AS "nonzero",
    COALESCE(SUM("t3"."moment_1_0"), 0) AS "moment_1_0",
    COALESCE(SUM("t3"."moment_1_1"), 0) AS "moment_1_1",
    COALESCE(SUM("t3"."moment_1_2"), 0) AS "moment_1_2",
    COALESCE(SUM("t3"."moment_1_3"), 0) AS "moment_1_3",
    COALESCE(SUM("t3"."moment_2_0"), 0) AS "moment_2_0",
    COALESCE(SUM("t3"."moment_2_1"), 0) AS "moment_2_1",
    COALESCE(SUM("t3"."moment_2_2"), 0) AS "moment_2_2",
    COALESCE(SUM("t3"."moment_2_3"), 0) AS "moment_2_3",
    COALESCE(SUM("t3"."moment_3_0"), 0) AS "moment_3_0",
    COALESCE(SUM("t3"."moment_3_1"), 0) AS "moment_3_1",
    COALESCE(SUM("t3"."moment_3_2"), 0) AS "moment_3_2",
    COALESCE(SUM("t3"."moment_3_3"), 0) AS "moment_3_3",
    COALESCE(SUM("t3"."moment_4_0"), 0) AS "moment_4_0",
    COALESCE(SUM("t3"."inverse_0"), 0) AS "inverse_0",
    COALESCE(SUM("t3"."expected_0"), 0) AS "expected_0",
    COALESCE(SUM("t3"."spread_0"), 0) AS "spread_0",
    COALESCE(SUM("t3"."inverse_1"), 0) AS "inverse_1",
    COALESCE(SUM("t3"."expected_1"), 0) AS "expected_1",
    COALESCE(SUM("t3"."spread_1"), 0) AS "spread_1",
    COALESCE(SUM("t3"."known_sum"), 0) AS "known_sum",
    MIN("t3"."__share_0") AS "least__share_0",
    MIN("t3"."__share_1") AS "least__share_1",
    MIN("t3"."__total") AS "least__total",
    MAX("t3"."__share_0") AS "most__share_0",
    MAX("t3"."__share_1") AS "most__share_1",
    MAX("t3"."__total") AS "most__total"
  FROM (
    SELECT
      "t2"."batch",
      "t2"."arm",
      "t2"."__reward",
      "t2"."__share_0",
      "t2"."__share_1",
      "t2"."__propensity",
      "t2"."__weight",
      "t2"."__total",
      "t2"."__reward" - 10.0 AS "moment_0_1",
      (
        "t2"."__reward" - 10.0
      ) * (
        "t2"."__reward" - 10.0
      ) AS "moment_0_2",
      (
        "t2"."__reward" - 10.0
      ) * (
        "t2"."__reward" - 10.0
      ) * (
        "t2"."__reward" - 10.0
      ) AS "moment_0_3",
      CASE WHEN "t2"."__reward" <> 0.0 THEN 1.0 ELSE 0.0 END AS "nonzero",
      "t2"."__weight" AS "moment_1_0",
      "t2"."__weight" * (
        "t2"."__reward" - 10.0
      ) AS "moment_1_1",
      "t2"."__weight" * (
        (
          "t2"."__reward" - 10.0
        ) * (
          "t2"."__reward" - 10.0
        )
      ) AS "moment_1_2",
      "t2"."__weight" * (
        (
          "t2"."__reward" - 10.0
        ) * (
          "t2"."__reward" - 10.0
        ) * (
          "t2"."__reward" - 10.0
        )
      ) AS "moment_1_3",
      "t2"."__weight" * "t2"."__weight" AS "moment_2_0",
      "t2"."__weight" * "t2"."__weight" * (
        "t2"."__reward" - 10.0
      ) AS "moment_2_1",
      "t2"."__weight" * "t2"."__weight" * (
        (
          "t2"."__reward" - 10.0
        ) * (
          "t2"."__reward" - 10.0
        )
      ) AS "moment_2_2",
      "t2"."__weight" * "t2"."__weight" * (
        (
          "t2"."__reward" - 10.0
        ) * (
          "t2"."__reward" - 10.0
        ) * (
          "t2"."__reward" - 10.0
        )
      ) AS "moment_2_3",
      "t2"."__weight" * "t2"."__weight" * "t2"."__weight" AS "moment_3_0",
      "t2"."__weight" * "t2"."__weight" * "t2"."__weight" * (
        "t2"."__reward" - 10.0
      ) AS "moment_3_1",
      "t2"."__weight" * "t2"."__weight" * "t2"."__weight" * (
        (
          "t2"."__reward" - 10.0
        ) * (
          "t2"."__reward" - 10.0
        )
      ) AS "moment_3_2",
      "t2"."__weight" * "t2"."__weight" * "t2"."__weight" * (
        (
          "t2"."__reward" - 10.0
        ) * (
          "t2"."__reward" - 10.0
        ) * (
          "t2"."__reward" - 10.0
        )
      ) AS "moment_3_3",
      "t2"."__weight" * "t2"."__weight" * "t2"."__weight" * "t2"."__weight" AS "moment_4_0",
      CASE WHEN "t2"."__share_0" > 0.0 THEN 1.0 / "t2"."__share_0" ELSE 0.0 END AS "inverse_0",
      "t2"."__share_0" AS "expected_0",
      "t2"."__share_0" * (
        1.0 - "t2"."__share_0"
      ) AS "spread_0",
      CASE WHEN "t2"."__share_1" > 0.0 THEN 1.0 / "t2"."__share_1" ELSE 0.0 END AS "inverse_1",
      "t2"."__share_1" AS "expected_1",
      "t2"."__share_1" * (
        1.0 - "t2"."__share_1"
      ) AS "spread_1",
      "t2"."__reward" + "t2"."__share_0" + "t2"."__share_1" + "t2"."__weight" AS "known_sum"
    FROM (
      SELECT
        "t1"."batch",
        "t1"."arm",
        "t1"."__reward",
        "t1"."__share_0",
        "t1"."__share_1",
        "t1"."__propensity",
        CASE WHEN "t1"."__propensity" > 0.0 THEN 1.0 / "t1"."__propensity" ELSE NULL END AS "__weight",
        "t1"."__share_0" + "t1"."__share_1" AS "__total"
      FROM (
        SELECT
          DATE_TRUNC('DAY', "t0"."at") AS "batch",
          "t0"."arm",
          "t0"."y" AS "__reward",
          "t0"."propensity_a" AS "__share_0",
          "t0"."propensity_b" AS "__share_1",
          CASE
            WHEN "t0"."arm" = 'b'
            THEN "t0"."propensity_b"
            ELSE CASE WHEN "t0"."arm" = 'a' THEN "t0"."propensity_a" ELSE NULL END
          END AS "__propensity"
        FROM "log" AS "t0"
      ) AS "t1"
    ) AS "t2"
  ) AS "t3"
  GROUP BY
    1,
    2
) AS "t4"
