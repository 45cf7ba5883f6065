export { textTable } from '../spec/text-table';
