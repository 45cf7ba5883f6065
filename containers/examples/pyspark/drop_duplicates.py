"""Drops lines that occur twice from raw text, before it is tokenised. Runs under smspark-submit.

The channel is on every instance (FullyReplicated), so executors read it as local files; what each of them writes below the output
folder is uploaded from its own instance.
"""

import argparse

from pyspark.sql import SparkSession

parser = argparse.ArgumentParser()
parser.add_argument("--input", default="file:///opt/ml/processing/input/raw")
parser.add_argument("--output", default="file:///opt/ml/processing/output/text")
options = parser.parse_args()

spark = SparkSession.builder.appName("drop-duplicates").getOrCreate()
lines = spark.read.text(options.input)
lines.dropDuplicates().write.mode("overwrite").text(options.output)
spark.stop()
