import { JobFailure } from '../job-failure';

/** A program and its arguments. */
export type Command = [string, ...string[]];

/** The part of a request that determines what a container runs. */
export interface ContainerRequest {
  image: string;
  entrypoint?: readonly string[];
  arguments?: readonly string[];
  /** Arguments for the image's own entrypoint when the request gives none. */
  defaultArguments: readonly string[];
}

/**
 * The command of an instance. There is no real image: the command comes from the request, or from the sandbox's option for the image.
 * @throws JobFailure ClientError when neither gives a command
 */
export function containerCommand(
  request: ContainerRequest,
  imageCommand: (image: string) => Command | undefined,
): Command {
  const args = request.arguments ?? [];
  const [entry, ...rest] = request.entrypoint ?? [];
  if (entry !== undefined) return [entry, ...rest, ...args];
  const [known, ...more] = imageCommand(request.image) ?? [];
  if (known !== undefined) return [known, ...more, ...(args.length > 0 ? args : request.defaultArguments)];
  throw new JobFailure(
    'ClientError',
    `the sandbox has no Docker and cannot run the entrypoint of image ${request.image}; give the request a ` +
      'ContainerEntrypoint, or name a command for the image in the sandbox option imageCommands',
  );
}
