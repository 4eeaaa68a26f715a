import type { FieldProblems } from './field-problem.ts';
import { Fields } from './fields.ts';
import { labelValueProblems, qualifiedNameProblems } from './name-rules.ts';
import { isJsonObject } from '../json-text.ts';
import type { JsonObject } from '../json-text.ts';

export type Labels = Readonly<Record<string, string>>;

/** A selector of labels (`matchLabels`, `matchExpressions`), all of whose requirements must hold. */
export interface LabelSelector {
  readonly requirements: readonly LabelRequirement[];
}

interface LabelRequirement {
  readonly key: string;
  readonly operator: Operator;
  readonly values: readonly string[];
}

type Operator = (typeof OPERATORS)[number];
const OPERATORS = ['In', 'NotIn', 'Exists', 'DoesNotExist'] as const;

/** Selects everything. */
export const EVERYTHING: LabelSelector = { requirements: [] };

/** Reads a selector, checked as API servers check those of policies. */
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
      requirements.push({ key, operator: 'In', values: [text] });
    }
  }
  for (const [element, at] of fields.list('matchExpressions')) {
    requirements.push(readRequirement(element, at, problems));
  }
  return { requirements };
}

function readRequirement(value: unknown, path: string, problems: FieldProblems): LabelRequirement {
  const fields = new Fields(value, path, ['key', 'operator', 'values'], problems);
  const key = fields.text('key') ?? '';
  const operator = fields.text('operator') ?? '';
  const values = fields.texts('values');
  const known = OPERATORS.find((one) => one === operator);
  if (known === undefined) {
    problems.invalid(fields.at('operator'), operator, 'not a valid selector operator');
  } else if ((known === 'In' || known === 'NotIn') && values.length === 0) {
    problems.required(fields.at('values'), "must be specified when `operator` is 'In' or 'NotIn'");
  } else if ((known === 'Exists' || known === 'DoesNotExist') && values.length > 0) {
    problems.forbidden(fields.at('values'), "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
  }
  checkKey(key, fields.at('key'), problems);
  for (const [index, one] of values.entries()) {
    for (const problem of labelValueProblems(one)) {
      problems.invalid(`${fields.at('values')}[${index}]`, one, problem);
    }
  }
  return { key, operator: known ?? 'In', values };
}

function checkKey(key: string, path: string, problems: FieldProblems): void {
  for (const problem of qualifiedNameProblems(key)) {
    problems.invalid(path, key, problem);
  }
}

export function selects(selector: LabelSelector, labels: Labels): boolean {
  return selector.requirements.every(({ key, operator, values }) => {
    const label = Object.hasOwn(labels, key) ? labels[key] : undefined;
    switch (operator) {
      case 'In':
        return label !== undefined && values.includes(label);
      case 'NotIn':
        return label === undefined || !values.includes(label);
      case 'Exists':
        return label !== undefined;
      case 'DoesNotExist':
        return label === undefined;
      default:
        return operator satisfies never;
    }
  });
}

/** The selector as the text that API servers take in queries. */
export function selectorText(selector: LabelSelector): string {
  return selector.requirements
    .map(({ key, operator, values }) => {
      switch (operator) {
        case 'In':
          return values.length === 1 ? `${key}=${values[0]}` : `${key} in (${values.join(',')})`;
        case 'NotIn':
          return `${key} notin (${values.join(',')})`;
        case 'Exists':
          return key;
        case 'DoesNotExist':
          return `!${key}`;
        default:
          return operator satisfies never;
      }
    })
    .join(',');
}

/** `metadata.labels` of an object. */
export function labelsOf(object: JsonObject | undefined): Labels {
  const metadata = object !== undefined && Object.hasOwn(object, 'metadata') ? object.metadata : undefined;
  const labels = isJsonObject(metadata) && Object.hasOwn(metadata, 'labels') ? metadata.labels : undefined;
  return isJsonObject(labels) ? (labels as Labels) : {};
}
