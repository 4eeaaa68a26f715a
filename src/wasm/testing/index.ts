export { wat } from './wat.ts';
