// The contents of a test file; see docs/testing.md.
import type { JsonObject, JsonValue } from '../../../engine/index.ts';
import type { ExecutionMode } from '../../../modules/index.ts';
import type { RequestDetails } from '../../policy/admission-request.ts';
import type { TextMatcher } from './text-matcher.ts';

/** A value in the test file, or the path of a file with it. */
export type ValueSource<Value extends JsonValue = JsonObject> = { readonly value: Value } | FileSource;

/** A file that a test file names. `at` is the offset of its name in the test file. */
export interface FileSource {
  /** Relative to the test file. */
  readonly path: string;
  readonly at: number;
}

/** The policy under test. */
export type TestedPolicy =
  /** An inline entry of a policies file. */
  | {
      readonly kind: 'policy';
      /** Checked by the reader of policies files. */
      readonly entry: JsonObject;
      readonly settingsFile?: FileSource;
      readonly executionMode?: ExecutionMode;
    }
  /** An entry of a policies file. */
  | { readonly kind: 'entry'; readonly file: FileSource; readonly id: string }
  /** Manifests: the policy as it is applied, parameters and namespaces; Kubernetes' own policies with bindings. */
  | ManifestSubject;

/** A policy in manifests. */
export interface ManifestSubject {
  readonly kind: 'manifests';
  readonly sources: readonly ValueSource[];
  /** Chooses one of several policies: `cap/pinned-images`. */
  readonly name?: string;
  /** Replaces the mode of the policy. */
  readonly mode?: 'protect' | 'monitor';
  /** Files to use in place of modules, by reference: builds that are not published yet. */
  readonly modules?: Readonly<Record<string, FileSource>>;
  /** Host capabilities of policies of namespaces, which their PolicyServer grants. Default: none. */
  readonly hostCapabilities?: readonly string[];
  readonly kubernetesVersion?: number;
}

/** The request of a case. */
export type Question =
  /** Objects, from which an admission request is built. */
  | {
      readonly kind: 'objects';
      readonly object?: ValueSource;
      readonly oldObject?: ValueSource;
      readonly details: RequestDetails;
    }
  /** A whole AdmissionReview or AdmissionRequest. */
  | { readonly kind: 'request'; readonly request: ValueSource }
  | { readonly kind: 'raw'; readonly request: ValueSource<JsonValue> }
  /** No request: only the settings are validated. */
  | { readonly kind: 'none' };

/** The expected response. Absent fields match anything. */
export interface Expectation {
  readonly settings?: 'accepted' | 'rejected';
  /** Whether the policy matches the request, by its rules and selectors. Default: it does. */
  readonly matched?: boolean;
  readonly allowed?: boolean;
  /** The message of the denial or of the rejected settings, or why the policy does not match. */
  readonly message?: TextMatcher;
  readonly code?: number;
  /** All warnings, in order. */
  readonly warnings?: readonly TextMatcher[];
  /** All annotations. */
  readonly auditAnnotations?: Readonly<Record<string, TextMatcher>>;
  /** The object after the patch. */
  readonly object?: ValueSource<JsonValue>;
  /** Fields of the object after the patch; others are ignored. */
  readonly objectContains?: JsonValue;
  readonly patch?: readonly JsonValue[];
  readonly unchanged?: true;
}

export interface TestCase {
  readonly name: string;
  /** Position in the test file, from 1. */
  readonly line: number;
  readonly column: number;
  /** Offset in the test file. */
  readonly at: number;
  /** Replaces the settings of the policy. */
  readonly settings?: ValueSource;
  /** A recorded session that answers host capabilities. */
  readonly session?: FileSource;
  readonly question: Question;
  readonly expect: Expectation;
}

/** One test file. */
export interface TestSuite {
  readonly name: string;
  /** The file name for messages. */
  readonly file: string;
  readonly subject: TestedPolicy;
  /** Offset of the policy in the file. */
  readonly subjectAt: number;
  readonly cases: readonly TestCase[];
}
