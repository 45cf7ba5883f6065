// Two short scenarios in simulation and sandbox, one of them about what heartbeats say; test/long/agreement.test.ts has the others.
import { CASES } from '../agreement/cases';
import { testsOfAgreement } from '../agreement/suite';

testsOfAgreement(CASES.filter(({ scenario }) => ['interrupted-on-demand', 'restarts'].includes(scenario)));
