import { buildJson, endOfJsonString, jsonNumberAt, parseJson } from '../../values/index.ts';
import type { CelValue } from '../model/value.ts';
import { MAX_INT, MIN_INT, doubleOf, toInt } from './number.ts';

// JSON.parse does not distinguish the double `1.0` from the int `1`, and rounds integers beyond 2^53. Most documents
// have no such number: a scan decides whether the result of JSON.parse can be used.

const QUOTE_CODE = 0x22;
const MINUS = 0x2d;
const DIGIT_0 = 0x30;
const DIGIT_9 = 0x39;

/** Integers with at most this many digits are safe. */
const SAFE_DIGITS = 15;

/**
 * Parses JSON to CEL values as API servers decode it: a number without fraction and exponent is an int if it fits 64
 * bits, every other number is a double.
 * @throws SyntaxError like JSON.parse
 */
export function parseCelJson(text: string): CelValue {
  const plain = parseJson(text) as CelValue;
  return hasSpecialNumber(text) ? (buildJson(text, numberOf) as CelValue) : plain;
}

/** Whether a valid document has a number that JSON.parse does not represent correctly. */
function hasSpecialNumber(text: string): boolean {
  let index = 0;
  while (index < text.length) {
    const code = text.charCodeAt(index);
    if (code === QUOTE_CODE) {
      index = endOfJsonString(text, index);
    } else if (code === MINUS || (code >= DIGIT_0 && code <= DIGIT_9)) {
      const token = jsonNumberAt(text, index);
      if (isSpecial(token)) {
        return true;
      }
      index += token.length;
    } else {
      index++;
    }
  }
  return false;
}

function isSpecial(token: string): boolean {
  if (isIntToken(token)) {
    return token.length > SAFE_DIGITS || token === '-0';
  }
  return Number.isInteger(Number(token));
}

function isIntToken(token: string): boolean {
  return !/[.eE]/.test(token);
}

function numberOf(token: string): CelValue {
  if (!isIntToken(token)) {
    return doubleOf(Number(token));
  }
  if (token.length <= SAFE_DIGITS) {
    // An int is never -0.
    return Number(token) + 0;
  }
  // A number with more digits than 64 bits becomes a double, whose conversion is not quadratic.
  const exact = token.length <= 20 ? BigInt(token) : undefined;
  return exact === undefined || exact > MAX_INT || exact < MIN_INT ? doubleOf(Number(token)) : toInt(exact);
}
