"""Which subjects a pattern holds, as Spark sees it: `*` is one segment, a last `**` any rest, `/$…` the server's
own. That of a shared subscription, `$share/GROUP/…`, holds what its rest does.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

_PLAIN = r"regexp_replace(selector, r'^\$share/[^/]*', '')"
_REGEX = rf"""concat(
    '(?s)^', if({_PLAIN} rlike r'^/\*\*?(/|$)', r'(?!/\$)', ''),
    array_join(transform(slice(split({_PLAIN}, '/'), 2, 1025), part -> case part
        when '**' then '(/.*)?' when '*' then '/[^/]*'
        else concat('/', regexp_replace(part, r'([\\.\[\]{{}}()*+?^$|])', r'\\$1')) end), ''),
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
