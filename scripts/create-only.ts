// Writes test/fixtures/templates/create-only.json, after each new version of @aws-cdk/aws-service-spec: properties that CloudFormation cannot
// change without replacing the resource. Reading the whole specification takes six seconds of each process of the tests; this file, none.
import { writeFileSync } from 'node:fs';
import { createOnlyFile, FILE } from '../test/laws/support/create-only';

writeFileSync(FILE, createOnlyFile());
