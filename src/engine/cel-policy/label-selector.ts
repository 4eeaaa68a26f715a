import { labelSelector, labelSelectorErrors, Selector } from '../../resources/index.ts';
import type { FieldReader } from '../values/field-reader.ts';
import type { FieldProblem } from '../values/field-problem.ts';

/** The label selector at a key, validated like selectors of policies in API servers; undefined when it is absent. */
export function readLabelSelector(owner: FieldReader, key: string, problems: FieldProblem[]): Selector | undefined {
  const fields = owner.inside(key);
  if (fields === undefined) {
    return undefined;
  }
  const known = problems.length;
  fields.knownKeys(['matchLabels', 'matchExpressions']);
  checkLabels(fields);
  for (const requirement of fields.each('matchExpressions')) {
    requirement.knownKeys(['key', 'operator', 'values']);
    requirement.text('key');
    requirement.text('operator');
    requirement.texts('values');
  }
  problems.push(...labelSelectorErrors(owner.value(key), owner.at(key)));
  return problems.length > known ? Selector.NOTHING : labelSelector(owner.value(key));
}

function checkLabels(fields: FieldReader): void {
  const labels = fields.inside('matchLabels');
  labels?.keys.forEach((key) => labels.text(key));
}
