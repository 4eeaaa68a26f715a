import { failTemplate } from '../../../go/templates/index.ts';
import type { GoValue } from '../../../go/index.ts';
import type { LimitedMeter } from '../../../go/templates/index.ts';
import type { ObjectLookups } from './object-lookups.ts';

/** What functions use of the rendering that they are called in. */
export interface Rendering {
  readonly meter: LimitedMeter;
  readonly lookups: ObjectLookups;
  readonly now: Date;
  /** Spaces that YAML has before the lines of the text that is rendered: `indent` counts them, and the text lacks them. */
  readonly blockIndent: number;
  /** Set by `skipObject`; undefined where there is no object to skip. */
  skip: boolean | undefined;
}

/** A function of governance templates. A piped value is its last operand. */
export type GovernanceFunction = (operands: readonly GoValue[], rendering: Rendering) => GoValue;

export type FunctionRow = readonly [name: string, call: GovernanceFunction];

/** Functions that charge for what they return. */
const charging = new WeakSet<GovernanceFunction>();

/** A function that charges for the text that it returns, as far as it has not: a chain of them could double it without end. */
export function charged(call: GovernanceFunction): GovernanceFunction {
  const charges: GovernanceFunction = (operands, rendering) => {
    const before = rendering.meter.made;
    const value = call(operands, rendering);
    const made = rendering.meter.made - before;
    rendering.meter.chars(typeof value === 'string' ? Math.max(0, value.length - made) : 0);
    return value;
  };
  charging.add(charges);
  return charges;
}

/**
 * Functions by name.
 * @throws TypeError for one without a charge, when it is loaded
 */
export function functionTable(rows: readonly FunctionRow[]): ReadonlyMap<string, GovernanceFunction> {
  const uncharged = rows.filter(([, call]) => !charging.has(call)).map(([name]) => name);
  if (uncharged.length > 0) {
    throw new TypeError(
      `functions of templates without a charge: ${uncharged.join(', ')}; make them by charged() or counted()`,
    );
  }
  return new Map(rows);
}

/** A function with so many operands, which Go counts before it calls. {@link charged} for what it returns. */
export function counted(least: number, most: number, call: GovernanceFunction): GovernanceFunction {
  const expected = least === most ? String(least) : most === Infinity ? `at least ${least}` : `${least} to ${most}`;
  return charged((operands, rendering) =>
    operands.length >= least && operands.length <= most
      ? call(operands, rendering)
      : failTemplate(`expected ${expected} operands, got ${operands.length}`),
  );
}

/** Functions that Sprig has also under a name with `must`, which here fail alike. */
export function withMust(rows: readonly FunctionRow[]): readonly FunctionRow[] {
  return rows.flatMap(([name, call]): readonly FunctionRow[] => [
    [name, call],
    [`must${name.charAt(0).toUpperCase()}${name.slice(1)}`, call],
  ]);
}
