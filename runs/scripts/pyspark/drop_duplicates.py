"""Removes duplicate lines from raw text before tokenization. Runs under smspark-submit.

Every instance has the complete channel (FullyReplicated), so executors read it as local files. Each instance uploads the files that its
executors write to the output folder.
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
