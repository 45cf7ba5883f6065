// The request and the job.json of a run, whole for a plain one, and for every other the places that differ from it. After a change that is meant:
// UPDATE_FIXTURES=1 npx vitest run --project unit test/core/job/cases.test.ts, and read the difference.
import path from 'node:path';
import { jobFile } from '../../../lib/core/job/job-file';
import { processingJobRequest } from '../../../lib/core/job/processing-request';
import { trainingJobRequest } from '../../../lib/core/job/training-request';
import { changes, testTables } from '../../support/run-cases';

testTables(path.join(__dirname, 'cases'), {
  request: trainingJobRequest,
  requestChanges: (plan, base) => changes(trainingJobRequest(base()), trainingJobRequest(plan)),
  processing: processingJobRequest,
  processingChanges: (plan, base) => changes(processingJobRequest(base()), processingJobRequest(plan)),
  file: jobFile,
  fileChanges: (plan, base) => changes(jobFile(base()), jobFile(plan)),
});
