SELECT
  *
FROM (
  SELECT
    "t1"."batch",
    "t1"."arm",
    COUNT(*) AS "n",
    COUNT("t1"."known_sum") AS "known",
    COALESCE(SUM("t1"."moment_0_1"), 0) AS "moment_0_1",
    COALESCE(SUM("t1"."moment_0_2"), 0) AS "moment_0_2",
    COALESCE(SUM("t1"."moment_0_3"), 0) AS "moment_0_3",
    COALESCE(SUM("t1"."nonzero"), 0) AS "nonzero",
    COALESCE(SUM("t1"."known_sum"), 0) AS "known_sum",
    MIN("t1"."__share_0") AS "least__share_0",
    MIN("t1"."__share_1") AS "least__share_1",
    MAX("t1"."__share_0") AS "most__share_0",
    MAX("t1"."__share_1") AS "most__share_1"
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
      END AS "__propensity",
      "t0"."y" - 10.0 AS "moment_0_1",
      (
        "t0"."y" - 10.0
      ) * (
        "t0"."y" - 10.0
      ) AS "moment_0_2",
      (
        "t0"."y" - 10.0
      ) * (
        "t0"."y" - 10.0
      ) * (
        "t0"."y" - 10.0
      ) AS "moment_0_3",
      CASE WHEN "t0"."y" <> 0.0 THEN 1.0 ELSE 0.0 END AS "nonzero",
      "t0"."y" + "t0"."propensity_a" + "t0"."propensity_b" AS "known_sum"
    FROM "log" AS "t0"
  ) AS "t1"
  GROUP BY
    1,
    2
) AS "t2"
