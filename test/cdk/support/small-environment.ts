import { Template } from 'aws-cdk-lib/assertions';
import { EnvironmentStack } from '../../../lib/cdk';
import { ENV, resourcesOf, specOf, testApp } from './app';

/** Principals that one person's role stands for. */
export const person = (name: string): string[] => [`arn:aws:iam::111122223333:role/${name}`];

/** The resources of an environment without network and image build: its roles, launcher and storage. */
export const smallEnvironment = (more: object) =>
  resourcesOf(
    Template.fromStack(
      new EnvironmentStack(testApp(), 'Slipway', {
        env: ENV,
        spec: specOf({
          network: { mode: 'none' },
          image: { uri: '111122223333.dkr.ecr.us-west-2.amazonaws.com/own@sha256:0' },
          ...more,
        }),
      }),
    ),
  );
