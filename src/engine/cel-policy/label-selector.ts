import type { FieldProblems } from './field-problem.ts';
import { Fields } from './fields.ts';
import { labelValueProblems, qualifiedNameProblems, Selector } from '../../resources/index.ts';
import type { LabelRequirement, Labels } from '../../resources/index.ts';
import { isJsonObject } from '../json-text.ts';
import type { JsonObject } from '../json-text.ts';

export type { Labels };

/** A label selector (`matchLabels`, `matchExpressions`); all requirements must hold. */
export type LabelSelector = Selector;

/** Operators of matchExpressions, and their spelling in selector strings. */
const OPERATORS = { In: 'in', NotIn: 'notin', Exists: 'exists', DoesNotExist: '!' } as const;

/** Selects all objects. */
export const EVERYTHING: LabelSelector = Selector.EVERYTHING;

/** Reads a selector, validated like selectors of policies in API servers. */
export function readLabelSelector(value: unknown, path: string, problems: FieldProblems): LabelSelector {
  const fields = new Fields(value, path, ['matchLabels', 'matchExpressions'], problems);
  const requirements: LabelRequirement[] = [];
  const labels = fields.value('matchLabels');
  if (labels !== undefined && !isJsonObject(labels)) {
    problems.add(fields.at('matchLabels'), 'expected a mapping of labels');
  } else {
    for (const [key, label] of Object.entries(labels ?? {})) {
      const text = typeof label === 'string' ? label : '';
      if (typeof label !== 'string') {
        problems.add(`${fields.at('matchLabels')}.${key}`, 'expected text');
      }
      checkKey(key, fields.at('matchLabels'), problems);
      for (const problem of labelValueProblems(text)) {
        problems.invalid(fields.at('matchLabels'), text, problem);
      }
      requirements.push({ key, operator: '=', values: [text] });
    }
  }
  for (const [element, at] of fields.list('matchExpressions')) {
    requirements.push(readRequirement(element, at, problems));
  }
  return new Selector(requirements);
}

function readRequirement(value: unknown, path: string, problems: FieldProblems): LabelRequirement {
  const fields = new Fields(value, path, ['key', 'operator', 'values'], problems);
  const key = fields.text('key') ?? '';
  const operator = fields.text('operator') ?? '';
  const values = fields.texts('values');
  const known = Object.hasOwn(OPERATORS, operator) ? OPERATORS[operator as keyof typeof OPERATORS] : undefined;
  if (known === undefined) {
    problems.invalid(fields.at('operator'), operator, 'not a valid selector operator');
  } else if ((known === 'in' || known === 'notin') && values.length === 0) {
    problems.required(fields.at('values'), "must be specified when `operator` is 'In' or 'NotIn'");
  } else if ((known === 'exists' || known === '!') && values.length > 0) {
    problems.forbidden(fields.at('values'), "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
  }
  checkKey(key, fields.at('key'), problems);
  for (const [index, one] of values.entries()) {
    for (const problem of labelValueProblems(one)) {
      problems.invalid(`${fields.at('values')}[${index}]`, one, problem);
    }
  }
  return { key, operator: known ?? 'in', values };
}

function checkKey(key: string, path: string, problems: FieldProblems): void {
  for (const problem of qualifiedNameProblems(key)) {
    problems.invalid(path, key, problem);
  }
}

/** `metadata.labels` of an object. */
export function labelsOf(object: JsonObject | undefined): Labels {
  const metadata = object !== undefined && Object.hasOwn(object, 'metadata') ? object.metadata : undefined;
  const labels = isJsonObject(metadata) && Object.hasOwn(metadata, 'labels') ? metadata.labels : undefined;
  return isJsonObject(labels) ? (labels as Labels) : {};
}
