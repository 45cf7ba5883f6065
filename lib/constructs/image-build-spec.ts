/**
 * Steps of the image build in CodeBuild. Any step that fails ends the build; nothing is pushed before the image's own
 * self-test has run (it is part of the Dockerfile).
 */
export const IMAGE_BUILD_SPEC = {
  version: '0.2',
  phases: {
    pre_build: {
      'on-failure': 'ABORT',
      commands: [
        'login() { aws ecr get-login-password --region "$2" | docker login --username AWS --password-stdin "$1"; }',
        'login "${REPOSITORY_URI%%/*}" "$AWS_REGION"',
        'case "$BASE_IMAGE" in *.dkr.ecr.*) base="${BASE_IMAGE%%/*}"; login "$base" "$(echo "$base" | cut -d. -f4)";; esac',
        'docker pull --quiet "$BASE_IMAGE"',
      ],
    },
    build: {
      'on-failure': 'ABORT',
      commands: [
        'docker build --file "$DOCKERFILE" --build-arg BASE_IMAGE="$BASE_IMAGE" --tag "$REPOSITORY_URI:$IMAGE_TAG" .',
      ],
    },
    post_build: {
      'on-failure': 'ABORT',
      commands: ['docker push --quiet "$REPOSITORY_URI:$IMAGE_TAG"'],
    },
  },
} as const;
