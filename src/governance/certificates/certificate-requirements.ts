import { parseDuration } from '../../go/index.ts';
import type { CertificatePolicy } from '../../resources/index.ts';
import { compilePattern } from '../../go/patterns/index.ts';
import { NamePatterns } from './name-patterns.ts';

/** The least remaining time without `minimumDuration`: four weeks, in nanoseconds. */
const DEFAULT_MINIMUM = 672n * 3600n * 1_000_000_000n;

/** The requirements as written. */
export type CertificateSpec = Omit<CertificatePolicy['spec'], 'remediationAction' | 'severity' | 'namespaceSelector'>;

/** The requirements, parsed. Durations in nanoseconds. */
export interface CertificateRequirements {
  readonly minimum: bigint;
  readonly minimumCa: bigint | undefined;
  readonly maximum: bigint | undefined;
  readonly maximumCa: bigint | undefined;
  readonly names: NamePatterns;
  /** The patterns as messages name them. */
  readonly patterns: string;
  /** What is wrong with the spec. A requirement that is wrong is not checked, so the policy is not compliant. */
  readonly problems: readonly string[];
}

export function certificateRequirements(spec: CertificateSpec): CertificateRequirements {
  const problems: string[] = [];
  const duration = (field: 'minimumDuration' | 'minimumCADuration' | 'maximumDuration' | 'maximumCADuration') => {
    const text = spec[field];
    const parsed = text === undefined ? undefined : parseDuration(text);
    if (text !== undefined && parsed === undefined) {
      problems.push(`spec.${field} is not a duration such as 300h`);
    }
    return parsed;
  };
  const pattern = (field: 'allowedSANPattern' | 'disallowedSANPattern') => {
    const source = spec[field] ?? '';
    const compiled = source === '' ? undefined : compilePattern(source);
    if (typeof compiled === 'string') {
      problems.push(`spec.${field} is not a regular expression: ${compiled}`);
      return undefined;
    }
    return compiled;
  };
  return {
    minimum: duration('minimumDuration') ?? DEFAULT_MINIMUM,
    minimumCa: duration('minimumCADuration'),
    maximum: duration('maximumDuration'),
    maximumCa: duration('maximumCADuration'),
    names: new NamePatterns(pattern('allowedSANPattern'), pattern('disallowedSANPattern')),
    patterns: patternsText(spec),
    problems,
  };
}

/** Upstream's format: the second pattern begins with a space, also alone. */
function patternsText({ allowedSANPattern = '', disallowedSANPattern = '' }: CertificateSpec): string {
  const allowed = allowedSANPattern === '' ? '' : `Allowed: ${allowedSANPattern}`;
  return disallowedSANPattern === '' ? allowed : `${allowed} Disallowed: ${disallowedSANPattern}`;
}
