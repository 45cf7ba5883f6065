// One short scenario in simulation and sandbox; test/long/agreement.test.ts has the others.
import { CASES } from '../agreement/cases';
import { testsOfAgreement } from '../agreement/suite';

testsOfAgreement(CASES.filter(({ scenario }) => scenario === 'interrupted-on-demand'));
