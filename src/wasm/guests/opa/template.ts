import { JsonNumber } from '../../../go/index.ts';
import { NO_VALUE, Template, TemplateError } from '../../../go/templates/index.ts';
import type { GoValue } from '../../../go/index.ts';
import type { TemplateMeter } from '../../../go/templates/index.ts';
import { boundedChars, objectOperand, stringOperand, undefinedBecause } from './builtin.ts';
import type { BuiltinContext, OpaBuiltin } from './builtin.ts';
import { RegoNumber } from './number.ts';
import { isArray, RegoObject, RegoSet } from './value.ts';
import type { RegoValue } from './value.ts';
import { regoText } from './value-text.ts';

/** Fuel for one step of a template. */
const FUEL_PER_STEP = 500;

const renderTemplate: OpaBuiltin = (operands, context) => {
  try {
    const template = new Template(stringOperand(operands, 0));
    const data = goValueOf(objectOperand(operands, 1));
    return template.execute(data, meterOf(context)).replaceAll(NO_VALUE, '<undefined>');
  } catch (error) {
    if (error instanceof TemplateError) {
      undefinedBecause(error.message, error);
    }
    throw error;
  }
};

/** OPA decodes numbers as `json.Number`, and cannot convert sets. */
function goValueOf(value: RegoValue): GoValue {
  if (value instanceof RegoNumber) {
    return new JsonNumber(value.text);
  }
  if (value instanceof RegoSet) {
    return undefinedBecause('strings.render_template: sets cannot be rendered');
  }
  if (value instanceof RegoObject) {
    const object = Object.create(null) as Record<string, GoValue>;
    for (const [key, item] of value) {
      object[typeof key === 'string' ? key : regoText(key)] = goValueOf(item);
    }
    return object;
  }
  return isArray(value) ? value.map(goValueOf) : value;
}

function meterOf(context: BuiltinContext): TemplateMeter {
  return {
    steps: (count) => context.charge(count * FUEL_PER_STEP),
    chars: boundedChars('strings.render_template', context),
  };
}

export const templateBuiltins: readonly (readonly [string, OpaBuiltin])[] = [
  ['strings.render_template', renderTemplate],
];
