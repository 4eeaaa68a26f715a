import { RE2JS } from 're2js';
import { parseDuration } from '../../go/index.ts';
import { errorText } from '../../values/index.ts';

/** The least remaining time without `minimumDuration`: four weeks, in nanoseconds. */
const DEFAULT_MINIMUM = 672n * 3600n * 1_000_000_000n;

/** Length of a pattern, as of those in schemas: longer ones take too much memory. Characters. */
const MAX_PATTERN_LENGTH = 10_000;

/** The requirements in the spec of a CertificatePolicy. */
export interface CertificateSpec {
  /** Labels that Secrets must have. */
  readonly labelSelector?: Readonly<Record<string, string>>;
  readonly minimumDuration?: string;
  readonly minimumCADuration?: string;
  readonly maximumDuration?: string;
  readonly maximumCADuration?: string;
  readonly allowedSANPattern?: string;
  readonly disallowedSANPattern?: string;
}

/** The requirements, parsed. Durations in nanoseconds. */
export interface CertificateRequirements {
  readonly minimum: bigint;
  readonly minimumCa: bigint | undefined;
  readonly maximum: bigint | undefined;
  readonly maximumCa: bigint | undefined;
  readonly allowed: RE2JS | undefined;
  readonly disallowed: RE2JS | undefined;
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
    const compiled = compiledPattern(spec[field] ?? '');
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
    allowed: pattern('allowedSANPattern'),
    disallowed: pattern('disallowedSANPattern'),
    patterns: patternsText(spec),
    problems,
  };
}

/** Undefined for an absent pattern, a message for one that cannot be used. */
function compiledPattern(pattern: string): RE2JS | string | undefined {
  if (pattern === '') {
    return undefined;
  }
  if (pattern.length > MAX_PATTERN_LENGTH) {
    return `longer than ${MAX_PATTERN_LENGTH} characters`;
  }
  try {
    return RE2JS.compile(pattern);
  } catch (error) {
    return errorText(error);
  }
}

/** Upstream's format: the second pattern begins with a space, also alone. */
function patternsText({ allowedSANPattern = '', disallowedSANPattern = '' }: CertificateSpec): string {
  const allowed = allowedSANPattern === '' ? '' : `Allowed: ${allowedSANPattern}`;
  return disallowedSANPattern === '' ? allowed : `${allowed} Disallowed: ${disallowedSANPattern}`;
}
