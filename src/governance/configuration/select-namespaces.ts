import { compareStrings } from '../../go/index.ts';
import { labelSelector, Selector } from '../../resources/index.ts';
import type { KubernetesObject, Labels } from '../../resources/index.ts';
import { CodedError, errorText } from '../../values/index.ts';
import { Glob } from './glob.ts';

/**
 * Steps of matching all names with all patterns: less than a second. A cluster has 10,000 namespaces at most, and a name takes a
 * hundred steps for each of ten patterns.
 */
const MAX_MATCHING_STEPS = 10_000_000;

/** Whether namespaces that are being deleted are selected. */
export type TerminatingInclusion = 'IfMatch' | 'Never';

/** `spec.namespaceSelector`, of a shape that the kind's schema has checked. */
export interface NamespaceSelector {
  /** Patterns of names: {@link Glob}. */
  readonly include?: readonly string[];
  readonly exclude?: readonly string[];
  /** Present but empty: all namespaces. */
  readonly matchLabels?: Labels;
  readonly matchExpressions?: readonly unknown[];
  /** Default: Default, the setting of the controller. */
  readonly terminatingInclusion?: TerminatingInclusion | 'Default';
}

/** A selector that cannot be used. The message is that of OCM. */
export class NamespaceSelectorError extends CodedError<'invalid-selector'> {
  override readonly name = 'NamespaceSelectorError';
}

/** A selector that selects nothing: it has neither patterns to include nor labels. */
export function isEmptySelector(selector: NamespaceSelector): boolean {
  return !hasLabelSelector(selector) && (selector.include ?? []).length === 0;
}

/**
 * The names of the selected namespaces, sorted.
 *
 * @param defaultInclusion the setting of the controller
 * @throws NamespaceSelectorError
 */
export function selectNamespaces(
  selector: NamespaceSelector,
  namespaces: readonly Pick<KubernetesObject, 'metadata'>[],
  defaultInclusion: TerminatingInclusion = 'IfMatch',
): readonly string[] {
  if (isEmptySelector(selector)) {
    return [];
  }
  const { terminatingInclusion = 'Default' } = selector;
  const inclusion = terminatingInclusion === 'Default' ? defaultInclusion : terminatingInclusion;
  const labels = labelsOf(selector);
  const include = globs(selector.include ?? [], 'include');
  const exclude = globs(selector.exclude ?? [], 'exclude');
  const spend = matchingBudget();
  return namespaces
    .filter(({ metadata }) => inclusion === 'IfMatch' || metadata.deletionTimestamp === undefined)
    .filter(({ metadata }) => labels.matches(metadata.labels))
    .map(({ metadata }) => metadata.name ?? '')
    .filter((name) => include.length === 0 || matchesAny(include, name, spend))
    .filter((name) => !matchesAny(exclude, name, spend))
    .sort(compareStrings);
}

function hasLabelSelector({ matchLabels, matchExpressions }: NamespaceSelector): boolean {
  return matchLabels !== undefined || matchExpressions !== undefined;
}

function labelsOf(selector: NamespaceSelector): Selector {
  try {
    return hasLabelSelector(selector) ? labelSelector(selector) : Selector.EVERYTHING;
  } catch (error) {
    throw invalid(`error parsing namespace LabelSelector: ${errorText(error)}`, error);
  }
}

function globs(patterns: readonly string[], field: string): readonly Glob[] {
  return patterns.map((pattern) => {
    try {
      return new Glob(pattern);
    } catch (error) {
      throw invalid(`error parsing '${field}' pattern '${pattern}': ${errorText(error)}`, error);
    }
  });
}

function matchesAny(patterns: readonly Glob[], name: string, spend: (steps: number) => void): boolean {
  return patterns.some((pattern) => pattern.matches(name, spend));
}

/** @returns a function that throws NamespaceSelectorError when all steps are used up */
function matchingBudget(): (steps: number) => void {
  let left = MAX_MATCHING_STEPS;
  return (steps) => {
    left -= steps;
    if (left < 0) {
      const message = 'the patterns of the namespaceSelector take too long: use fewer or shorter ones, or labels';
      throw new NamespaceSelectorError('invalid-selector', message);
    }
  };
}

function invalid(message: string, cause: unknown): NamespaceSelectorError {
  return new NamespaceSelectorError('invalid-selector', message, { cause });
}
