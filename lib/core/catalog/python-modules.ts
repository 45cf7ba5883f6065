/**
 * Modules of the standard library that a file of the same name takes the place of, in every package that imports them.
 * https://docs.python.org/3.11/library/sys.html#sys.stdlib_module_names, 2026-11-27, without those that are built in or loaded before the
 * script, and those that Python 3.13 no longer has. test/core/catalog compares it with an interpreter.
 */
export const STANDARD_MODULES: ReadonlySet<string> = new Set(
  `argparse ast asyncio base64 bdb bisect bz2 cProfile calendar cmd code codeop collections colorsys compileall concurrent
  configparser contextlib contextvars copy copyreg csv ctypes curses dataclasses datetime dbm decimal difflib dis doctest email
  ensurepip enum filecmp fileinput fnmatch fractions ftplib functools getopt getpass gettext glob graphlib gzip hashlib heapq hmac
  html http imaplib inspect ipaddress json keyword linecache locale logging lzma mailbox mimetypes modulefinder multiprocessing
  netrc numbers opcode operator optparse pathlib pdb pickle pickletools pkgutil platform plistlib poplib pprint profile pstats pty
  py_compile pyclbr pydoc pydoc_data queue quopri random re reprlib rlcompleter sched secrets selectors shelve shlex shutil signal
  smtplib socket socketserver sqlite3 ssl statistics string stringprep struct subprocess symtable sysconfig tabnanny tarfile
  tempfile textwrap threading timeit token tokenize tomllib trace traceback tracemalloc tty types typing unittest urllib uuid venv
  warnings wave weakref webbrowser wsgiref xml xmlrpc zipapp zipfile zoneinfo`.split(/\s+/),
);

/**
 * Packages of training images by the name under which they are imported.
 * https://github.com/aws/deep-learning-containers, https://huggingface.co/docs/sagemaker, 2026-11-27.
 */
export const IMAGE_PACKAGES: ReadonlySet<string> = new Set(
  `accelerate apex bitsandbytes boto3 botocore datasets deepspeed einops evaluate filelock flash_attn fsspec huggingface_hub jinja2
  lightning mlflow mpi4py numpy packaging pandas peft pyarrow pytorch_lightning ray requests s3fs s3torchconnector safetensors sagemaker
  sagemaker_training scipy sentencepiece sklearn smdistributed sympy tensorboard tokenizers torch torchaudio torchdata torchvision tqdm
  transformer_engine transformers triton trl vllm wandb xformers yaml`.split(/\s+/),
);
