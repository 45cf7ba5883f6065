/**
 * Scripts of the containers of level `train`. They only use bash and python3, so that every training image can run them. Each fact is one
 * line `verify {"name": value, ...}` on stdout.
 */

/** `"${BASE}"` is /opt/ml on SageMaker, and a separate directory per instance in the AWS emulator. */
const BASE = 'BASE="${SAGEMAKER_BASE_DIR:-/opt/ml}"';

const PYTHON_FACTS = `
import getpass, json, os, socket, sys
base = os.environ.get("SAGEMAKER_BASE_DIR", "/opt/ml")
config = json.load(open(base + "/input/config/resourceconfig.json"))
names = {}
hosts_file = base + "/input/config/hosts"
if os.path.exists(hosts_file):
    names = {line.split()[1]: line.split()[0] for line in open(hosts_file) if line.strip()}
def address(name):
    try:
        return names.get(name) or socket.gethostbyname(name)
    except OSError as error:
        return "error: " + str(error)
def binds(host):
    try:
        with socket.socket() as s:
            s.bind((host, 0))
        return True
    except OSError as error:
        return str(error)
shm = os.statvfs("/dev/shm")
channel = base + "/input/data/probe/hello.txt"
print("verify " + json.dumps({
    "config": config,
    "addresses": {host: address(host) for host in config["hosts"]},
    "ownAddressBinds": binds(address(config["current_host"])),
    "uid": os.getuid(),
    "python": "%d.%d" % sys.version_info[:2],
    "shmGiB": round(shm.f_frsize * shm.f_blocks / 2**30, 2),
    "credentials": bool(os.environ.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") or os.environ.get("AWS_CONTAINER_CREDENTIALS_FULL_URI")),
    "channel": open(channel).read().strip() if os.path.exists(channel) else None,
    "variable": os.environ.get("SLIPWAY_VERIFY"),
}), flush=True)
`;

/**
 * Reports facts of the host; then each host writes a checkpoint, waits for SIGTERM and counts the seconds until SIGKILL. The loop is
 * infinite: the job is stopped through the API.
 */
export const FACTS_SCRIPT = `
${BASE}
python3 - <<'PYTHON'${PYTHON_FACTS}PYTHON
host=$(python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))["current_host"])' "$BASE/input/config/resourceconfig.json")
mkdir -p "$BASE/checkpoints" "$BASE/output/data"
echo "from $host" > "$BASE/checkpoints/$host.txt"
echo "output of $host" > "$BASE/output/data/$host.txt"
terminated() {
  echo "verify {\\"sigterm\\": $(date +%s)}"
  second=0
  while true; do echo "verify {\\"alive\\": $second}"; sleep 5; second=$((second + 5)); done
}
trap terminated TERM
echo "verify {\\"waiting\\": true}"
while true; do sleep 1; done
`;

/** Writes a checkpoint and a failure file, and fails with exit code 7. */
export const CRASH_SCRIPT = `
${BASE}
mkdir -p "$BASE/checkpoints" "$BASE/output"
echo "step 12" > "$BASE/checkpoints/step-12.txt"
sleep "\${SLIPWAY_VERIFY_SYNC_SECONDS:-20}"
printf '%s' '{"slipway":1,"class":"user-code","code":7,"reason":"verify: planned crash"}' > "$BASE/output/failure"
exit 7
`;

/** Reports the checkpoint files that exist when it starts. */
export const RESUME_SCRIPT = `
${BASE}
found=$(ls "$BASE/checkpoints" 2>/dev/null | tr '\\n' ' ')
echo "verify {\\"restored\\": \\"$found\\"}"
`;

/** Succeeds after a few seconds. */
export const SHORT_SCRIPT = 'echo "verify {\\"short\\": true}"; sleep 5';

/** Exceeds MaxRuntimeInSeconds. */
export const ENDLESS_SCRIPT = `
trap 'echo "verify {\\"sigterm\\": $(date +%s)}"; exit 0' TERM
while true; do sleep 1; done
`;
