// Labels of nodes that have another name now.
import { textOf } from '../../../values/index.ts';
import { isJsonObject } from '../../../resources/index.ts';
import { listAt, placedItems } from './fields.ts';

const DEPRECATED: Readonly<Record<string, string>> = {
  'beta.kubernetes.io/arch': 'deprecated since v1.14; use "kubernetes.io/arch" instead',
  'beta.kubernetes.io/os': 'deprecated since v1.14; use "kubernetes.io/os" instead',
  'failure-domain.beta.kubernetes.io/region': 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
  'failure-domain.beta.kubernetes.io/zone': 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
  'beta.kubernetes.io/instance-type': 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
};

/** What a label has been replaced by; undefined for others. */
export function deprecatedNodeLabel(label: unknown): string | undefined {
  const name = textOf(label);
  return Object.hasOwn(DEPRECATED, name) ? DEPRECATED[name] : undefined;
}

export function nodeSelectorWarnings(selector: unknown, path: string): readonly string[] {
  return isJsonObject(selector)
    ? Object.entries(DEPRECATED).flatMap(([label, advice]) =>
        Object.hasOwn(selector, label) ? [`${path}[${label}]: ${advice}`] : [],
      )
    : [];
}

/** Of the terms at a path, each with its matchExpressions. */
export function nodeTermsWarnings(terms: readonly unknown[], path: (index: number) => string): readonly string[] {
  return terms.flatMap((term, index) =>
    placedItems(listAt(term, 'matchExpressions'), `${path(index)}.matchExpressions`).flatMap(
      ({ path: field, value }) => {
        const advice = deprecatedNodeLabel(value['key']);
        return advice === undefined ? [] : [`${field}.key: ${textOf(value['key'])} is ${advice}`];
      },
    ),
  );
}
