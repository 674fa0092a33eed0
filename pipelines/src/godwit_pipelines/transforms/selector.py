"""Which subjects a pattern holds, as Spark sees it: `*` is one segment, a last `**` any rest, `/$…` the server's
own.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

_REGEX = r"""concat(
    '(?s)^', if(selector rlike r'^/\*\*?(/|$)', r'(?!/\$)', ''),
    array_join(transform(slice(split(selector, '/'), 2, 1025), part -> case part
        when '**' then '(/.*)?' when '*' then '/[^/]*'
        else concat('/', regexp_replace(part, r'([\\.\[\]{}()*+?^$|])', r'\\$1')) end), ''),
    '$') as regex"""
"""A pattern as a Java regular expression of the whole subject. A leading wildcard does not hold the server's own
`/$…`.
"""


def match_subjects(patterns: DataFrame, subjects: DataFrame) -> DataFrame:
    """Every pair of a row of `patterns` (column `selector`) and a row of `subjects` (column `subject`) that belong
    together. Both are to be distinct: it looks at each pair once.
    """
    wanted = F.broadcast(patterns.selectExpr("*", _REGEX))
    return subjects.join(wanted, F.rlike(F.col("subject"), F.col("regex")), "inner").drop("regex")
