import { afterAll } from 'vitest';
import { restoreClients } from './mocked-clients';

afterAll(restoreClients);
