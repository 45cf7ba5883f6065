import { CloudWatchLogsClient } from '@aws-sdk/client-cloudwatch-logs';
import { CodeBuildClient } from '@aws-sdk/client-codebuild';
import { ECRClient } from '@aws-sdk/client-ecr';
import type { CdkCustomResourceEvent, CdkCustomResourceIsCompleteEvent } from 'aws-lambda';
import { clientSettings } from '../shared/clients';
import { pointingToLog } from '../shared/custom-resource';
import { type BuildInFlight, type ImageBuildDeps, isComplete, onEvent } from './image-build';

let held: ImageBuildDeps | undefined;

function deps(): ImageBuildDeps {
  held ??= {
    codebuild: new CodeBuildClient(clientSettings),
    ecr: new ECRClient(clientSettings),
    logs: new CloudWatchLogsClient(clientSettings),
  };
  return held;
}

/** Marked as pure: a test reads the calls of each of the two handlers from a bundle that does not contain the other. */
/** Entry point that starts a build. */
export const handler = /* @__PURE__ */ pointingToLog((event: CdkCustomResourceEvent) => onEvent(deps(), event));
/** Entry point that checks whether the build is complete. */
export const isCompleteHandler = /* @__PURE__ */ pointingToLog(
  (event: CdkCustomResourceIsCompleteEvent & BuildInFlight) => isComplete(deps(), event),
);
