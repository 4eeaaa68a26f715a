export { RandomExpressions } from './random-expressions.ts';
export { Dice } from './dice.ts';
