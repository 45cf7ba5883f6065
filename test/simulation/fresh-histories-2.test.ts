import { freshHistories } from './fresh-histories';

freshHistories(1);
