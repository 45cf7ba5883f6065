/**
 * Lines of one command: CodeBuild documents that variables and the working directory carry over to the next command, but not functions or
 * `set -e`.
 */
const command = (...lines: string[]): string => `${['set -eu', ...lines].join('\n')}\n`;

/** The token is stored in a variable, because a pipe would hide a failure to get it. */
const LOGIN =
  'login() { token="$(aws ecr get-login-password --region "$2")"; printf %s "$token" | docker login --username AWS --password-stdin "$1"; }';

/** The base of the image: named by its digest, or the copy that the first build kept. */
const FROM = 'case "$BASE_IMAGE" in *@sha256:*) from="$BASE_IMAGE";; *) from="$REPOSITORY_URI:$BASE_TAG";; esac';

/**
 * Steps of the image build in CodeBuild. A base that is named by a tag is copied into the environment's repository by the first build,
 * under an immutable tag: later builds use the same base, even if its own tag has moved. Any step that fails ends the build; nothing is
 * pushed before the image's self-test, which is part of the Dockerfile, has passed. Each phase is one command, so that nothing depends on
 * what a shell keeps between commands: https://docs.aws.amazon.com/codebuild/latest/userguide/build-spec-ref.html
 */
export const IMAGE_BUILD_SPEC = {
  version: '0.2',
  phases: {
    pre_build: {
      'on-failure': 'ABORT',
      commands: [
        command(
          LOGIN,
          FROM,
          'login "${REPOSITORY_URI%%/*}" "$AWS_REGION"',
          'if [ "$from" = "$BASE_IMAGE" ] || ! docker pull --quiet "$from"; then',
          '  case "$BASE_IMAGE" in *.dkr.ecr.*) base="${BASE_IMAGE%%/*}"; login "$base" "$(echo "$base" | cut -d. -f4)";; esac',
          '  docker pull --quiet "$BASE_IMAGE"',
          '  if [ "$from" != "$BASE_IMAGE" ]; then docker tag "$BASE_IMAGE" "$from"; docker push --quiet "$from"; fi',
          'fi',
          'docker image inspect --format "built on {{index .RepoDigests 0}}" "$from"',
        ),
      ],
    },
    build: {
      'on-failure': 'ABORT',
      commands: [
        command(
          FROM,
          'docker build --file "$DOCKERFILE" --build-arg BASE_IMAGE="$from" --label "org.opencontainers.image.base.name=$BASE_IMAGE" --tag "$REPOSITORY_URI:$IMAGE_TAG" .',
        ),
      ],
    },
    post_build: {
      'on-failure': 'ABORT',
      commands: [command('docker push --quiet "$REPOSITORY_URI:$IMAGE_TAG"')],
    },
  },
} as const;
