import { nearestKey } from '../../values/index.ts';
import { BUILTIN_FUNCTIONS, TemplateError } from '../../go/templates/index.ts';
import type { UnknownFunctionError } from '../../go/templates/index.ts';
import { GOVERNANCE_FUNCTIONS } from './function-table.ts';

/** Why functions of Open Cluster Management and Sprig are not here, with their names. */
const UNSUPPORTED: readonly (readonly [reason: string, names: string])[] = [
  ['it reads the environment of the controller, which is none of the policy’s business', 'env expandenv'],
  ['it reaches the network', 'getHostByName'],
  [
    'it has another result each time, so that the policy would never be compliant',
    'randAlpha randAlphaNum randAscii randBytes randInt randNumeric shuffle uuidv4 bcrypt htpasswd encryptAES genCA genCAWithKey genPrivateKey genSelfSignedCert genSelfSignedCertWithKey genSignedCert genSignedCertWithKey buildCustomCert',
  ],
  ['it derives secrets, which belong into a Secret', 'decryptAES derivePassword'],
  ['values for a hub are not encrypted here', 'protect'],
  [
    'it is rarely used',
    'abbrev abbrevboth add1f addf adler32sum ago b32dec b32enc base biggest camelcase clean dir divf duration durationRound ext hello htmlDateInZone initials isAbs kebabcase maxf minf mulf must_date_modify osBase osClean osDir osExt osIsAbs snakecase subf swapcase toDecimal trimall typeIsLike urlJoin urlParse wrap wrapWith call',
  ],
];

/** Names of functions that exist upstream, with the reason why they are not supported. */
export const UNSUPPORTED_FUNCTIONS: ReadonlyMap<string, string> = new Map(
  UNSUPPORTED.flatMap(([reason, names]) => names.split(' ').map((name) => [name, reason] as const)),
);

/** The error, with a hint: a typo, or a function that is not supported here. */
export function unknownFunction({ functionName, line }: UnknownFunctionError): TemplateError {
  return new TemplateError('template-invalid', `not a valid template: line ${line}: ${hint(functionName)}`);
}

function hint(name: string): string {
  const reason = UNSUPPORTED_FUNCTIONS.get(name);
  if (reason !== undefined) {
    return `the function ${name} of Open Cluster Management is not supported: ${reason}`;
  }
  const nearest = nearestKey(name, [...GOVERNANCE_FUNCTIONS.keys(), ...BUILTIN_FUNCTIONS.keys()]);
  return `there is no function ${name}${nearest === undefined ? '' : `: did you mean ${nearest}?`}`;
}
