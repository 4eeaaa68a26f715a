import { createHash, createHmac } from 'node:crypto';
import { stringOperand } from './builtin.ts';
import type { OpaBuiltin } from './builtin.ts';

function hash(algorithm: string): OpaBuiltin {
  return (operands) => createHash(algorithm).update(stringOperand(operands, 0)).digest('hex');
}

/** The operands are the text and the key. */
function hmac(algorithm: string): OpaBuiltin {
  return (operands) => {
    const text = stringOperand(operands, 0);
    return createHmac(algorithm, stringOperand(operands, 1)).update(text).digest('hex');
  };
}

const hmacEqual: OpaBuiltin = (operands) => stringOperand(operands, 0) === stringOperand(operands, 1);

export const cryptoBuiltins: readonly (readonly [string, OpaBuiltin])[] = [
  ['crypto.md5', hash('md5')],
  ['crypto.sha1', hash('sha1')],
  ['crypto.sha256', hash('sha256')],
  ['crypto.hmac.md5', hmac('md5')],
  ['crypto.hmac.sha1', hmac('sha1')],
  ['crypto.hmac.sha256', hmac('sha256')],
  ['crypto.hmac.sha512', hmac('sha512')],
  ['crypto.hmac.equal', hmacEqual],
];
