// What a text with templates reads, and becomes, as far as that is known without resolving it.
import { type TemplateCall, TemplateError, templateOutline } from '../../go/templates/index.ts';
import { HUB, MANAGED } from './resolve-templates.ts';

/** Longest text that is read: each of its branches makes one of the same length. Characters. */
const MAX_LENGTH = 100_000;

/** What stands for the value of an action. */
export const UNKNOWN_VALUE = 'value-of-a-template';

export interface StaticTemplate {
  /** The kinds that it looks up. */
  readonly kinds: readonly { readonly apiVersion: string; readonly kind: string }[];
  /** Look-ups of a kind that is not known, and why templates cannot be read: for a message. */
  readonly unknown: readonly string[];
  /** Texts that it may become, which have each of its branches: with {@link UNKNOWN_VALUE} for values. */
  readonly texts: readonly string[];
}

/** @param isLiteral whether `{{ … }}` is text, and only templates of the hub are resolved */
export function staticTemplate(text: string, isLiteral = false): StaticTemplate {
  if (text.length > MAX_LENGTH) {
    return { kinds: [], unknown: [`a template is longer than ${MAX_LENGTH} characters`], texts: [] };
  }
  let texts: readonly string[] = [text];
  let isPartial = false;
  const calls: TemplateCall[] = [];
  try {
    for (const delimiters of isLiteral ? [HUB] : [HUB, MANAGED]) {
      const outlines = texts.map((one) =>
        one.includes(delimiters.left)
          ? templateOutline(one, UNKNOWN_VALUE, delimiters)
          : { calls: [], texts: [one], isPartial: false },
      );
      isPartial ||= outlines.some((outline) => outline.isPartial);
      calls.push(...outlines.flatMap((outline) => outline.calls));
      texts = [...new Set(outlines.flatMap((outline) => outline.texts))];
    }
  } catch (error) {
    if (error instanceof TemplateError) {
      return { kinds: [], unknown: [error.message], texts: [] };
    }
    throw error;
  }
  const kinds = calls.map(kindOf).filter((kind) => kind !== undefined);
  const isKnown = ({ apiVersion, kind }: LookedUpKind): boolean => ![apiVersion, kind].includes('');
  const labels = text.includes('.ManagedClusterLabels') ? [MANAGED_CLUSTER] : [];
  return {
    kinds: [...kinds.filter(isKnown), ...labels],
    unknown: [
      ...(kinds.every(isKnown) ? [] : ['a template computes the kind that it looks up']),
      ...(isPartial ? ['a template has too many conditions'] : []),
    ],
    texts,
  };
}

interface LookedUpKind {
  readonly apiVersion: string;
  readonly kind: string;
}

const CLUSTERS = 'cluster.open-cluster-management.io';
const MANAGED_CLUSTER: LookedUpKind = { apiVersion: `${CLUSTERS}/v1`, kind: 'ManagedCluster' };
const CONFIG_MAP: LookedUpKind = { apiVersion: 'v1', kind: 'ConfigMap' };
const SECRET: LookedUpKind = { apiVersion: 'v1', kind: 'Secret' };
const CLAIM: LookedUpKind = { apiVersion: `${CLUSTERS}/v1alpha1`, kind: 'ClusterClaim' };
const NODE: LookedUpKind = { apiVersion: 'v1', kind: 'Node' };

/** The kinds of functions that read one kind. */
const KINDS: ReadonlyMap<string, LookedUpKind> = new Map([
  ['fromConfigMap', CONFIG_MAP],
  ['copyConfigMapData', CONFIG_MAP],
  ['fromSecret', SECRET],
  ['copySecretData', SECRET],
  ['fromClusterClaim', CLAIM],
  ['lookupClusterClaim', CLAIM],
  ['getNodesWithExactRoles', NODE],
  ['hasNodesWithExactRoles', NODE],
]);

/** The kind that a call looks up, with empty texts if the template computes it. */
function kindOf({ name, operands }: TemplateCall): LookedUpKind | undefined {
  if (name !== 'lookup') {
    return KINDS.get(name);
  }
  const [apiVersion = '', kind = ''] = operands.map((text) => (text?.includes(UNKNOWN_VALUE) === true ? '' : text));
  return { apiVersion, kind };
}
