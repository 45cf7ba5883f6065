// Two short scenarios in simulation and sandbox; test/long/agreement.test.ts has the others.
import { CASES } from '../long/agreement/cases';
import { testsOfAgreement } from '../long/agreement/suite';

const SHORT = ['interrupted-on-demand', 'first-start-unlisted'];

testsOfAgreement(CASES.filter(({ scenario }) => SHORT.includes(scenario)));
