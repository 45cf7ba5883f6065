/** Lines of one command: CodeBuild documents that variables and the working directory carry over to the next one, not functions or `set -e`. */
const command = (...lines: string[]): string => `${['set -eu', ...lines].join('\n')}\n`;

/** The token goes through a variable: a pipe would hide that it could not be had. */
const LOGIN =
  'login() { token="$(aws ecr get-login-password --region "$2")"; printf %s "$token" | docker login --username AWS --password-stdin "$1"; }';

/**
 * Steps of the image build in CodeBuild. Any step that fails ends the build; nothing is pushed before the image's own
 * self-test has run (it is part of the Dockerfile). Each phase is one command, so that nothing depends on what a shell keeps
 * from one command to the next: https://docs.aws.amazon.com/codebuild/latest/userguide/build-spec-ref.html
 */
export const IMAGE_BUILD_SPEC = {
  version: '0.2',
  phases: {
    pre_build: {
      'on-failure': 'ABORT',
      commands: [
        command(
          LOGIN,
          'login "${REPOSITORY_URI%%/*}" "$AWS_REGION"',
          'case "$BASE_IMAGE" in *.dkr.ecr.*) base="${BASE_IMAGE%%/*}"; login "$base" "$(echo "$base" | cut -d. -f4)";; esac',
          'docker pull --quiet "$BASE_IMAGE"',
        ),
      ],
    },
    build: {
      'on-failure': 'ABORT',
      commands: [
        command(
          'docker build --file "$DOCKERFILE" --build-arg BASE_IMAGE="$BASE_IMAGE" --tag "$REPOSITORY_URI:$IMAGE_TAG" .',
        ),
      ],
    },
    post_build: {
      'on-failure': 'ABORT',
      commands: [command('docker push --quiet "$REPOSITORY_URI:$IMAGE_TAG"')],
    },
  },
} as const;
