// Scenarios that both worlds play; one of them is among the tests of every change (test/long/always/agreement.test.ts). That each scenario has a case or a
// reason against one is checked by test/simulation/scenarios.test.ts.
import { CASES } from './agreement/cases';
import { testsOfAgreement } from './agreement/suite';

testsOfAgreement(CASES);
