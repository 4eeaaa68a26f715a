import { failTemplate } from '../../../go/templates/index.ts';
import { textOperand } from '../rendering/operands.ts';
import { counted } from '../rendering/rendering.ts';
import type { FunctionRow } from '../rendering/rendering.ts';
import { objectOf } from '../rendering/value-conversion.ts';
import { parseConstraint, parseVersion, satisfies } from '../rendering/version-constraint.ts';

export const VERSION_FUNCTIONS: readonly FunctionRow[] = [
  [
    'semver',
    counted(1, 1, (operands) => {
      const text = textOperand(operands, 0);
      const version = parseVersion(text) ?? failTemplate('semver: not a semantic version');
      return objectOf([
        ['Major', BigInt(version.numbers[0])],
        ['Minor', BigInt(version.numbers[1])],
        ['Patch', BigInt(version.numbers[2])],
        ['Prerelease', version.prerelease],
        ['Metadata', version.metadata],
        ['Original', text],
      ]);
    }),
  ],
  [
    'semverCompare',
    counted(2, 2, (operands, { meter }) => {
      const [constraint, text] = [textOperand(operands, 0), textOperand(operands, 1)];
      meter.steps(constraint.length);
      const parsed = parseConstraint(constraint) ?? failTemplate('semverCompare: not a valid constraint');
      return satisfies(parseVersion(text) ?? failTemplate('semverCompare: not a semantic version'), parsed);
    }),
  ],
];
