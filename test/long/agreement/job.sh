#!/usr/bin/env bash
# Stands in for the driver's launch.sh: an instance that does nothing until the test says how it ends. The first line of the file is the
# exit code, the rest what the driver would have written to output/failure.
order="@FOLDER@/$TRAINING_JOB_NAME"
trap '' TERM
exec 3<> <(:)
while [ ! -e "$order" ]; do read -r -t 0.2 -u 3 || true; done
read -r code < "$order"
if [ "$code" -ne 0 ]; then tail -n +2 "$order" > "$SAGEMAKER_BASE_DIR/output/failure"; fi
exit "$code"
