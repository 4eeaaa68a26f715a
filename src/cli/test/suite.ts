// What a test file says, once it has been read. Docs: docs/testing.md.
import type { JsonObject, JsonValue } from '../../engine/index.ts';
import type { ExecutionMode } from '../../modules/index.ts';
import type { TextMatcher } from './text-matcher.ts';

/** A value that is written in the test file, or the path of a file that holds it. */
export type Source<Value extends JsonValue = JsonObject> = { readonly value: Value } | FileSource;

/** A file that a test file names; `at` is where it does, an offset in the test file. */
export interface FileSource {
  /** As written: relative to the test file. */
  readonly path: string;
  readonly at: number;
}

/** What is asked. */
export type Subject =
  /** An entry of a policies file, written in the test file. */
  | {
      readonly kind: 'policy';
      /** As an entry of a policies file; checked by its reader. */
      readonly entry: JsonObject;
      readonly settingsFile?: FileSource;
      readonly executionMode?: ExecutionMode;
    }
  /** An entry of a policies file. */
  | { readonly kind: 'entry'; readonly file: FileSource; readonly id: string }
  /** Kubernetes' own kinds: policies, bindings, parameters, namespaces. */
  | { readonly kind: 'manifests'; readonly sources: readonly Source[]; readonly kubernetesVersion?: string };

/** Who asks. */
export interface User {
  readonly username: string;
  readonly uid?: string;
  readonly groups?: readonly string[];
  readonly extra?: JsonObject;
}

export type Operation = 'CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT';
export type Scope = 'Namespaced' | 'Cluster';

/** What is put into an admission request beside its objects. */
export interface RequestDetails {
  readonly operation?: Operation;
  readonly user?: User;
  readonly namespace?: string;
  readonly dryRun?: boolean;
  readonly subresource?: string;
  /** `widgets`, or in kubectl's notation `deployments.v1.apps`. */
  readonly resource?: string;
  readonly scope?: Scope;
  readonly options?: JsonObject;
}

/** What the policy is asked in one case. */
export type Question =
  /** An admission request is made of objects. */
  | {
      readonly kind: 'objects';
      readonly object?: Source;
      readonly oldObject?: Source;
      readonly details: RequestDetails;
    }
  /** A whole AdmissionReview or AdmissionRequest. */
  | { readonly kind: 'request'; readonly request: Source }
  | { readonly kind: 'raw'; readonly request: Source<JsonValue> }
  /** Only the settings are looked at. */
  | { readonly kind: 'none' };

/** What must come. What is absent may be anything. */
export interface Expectation {
  readonly settings?: 'accepted' | 'rejected';
  readonly allowed?: boolean;
  /** Of the denial, or of the rejected settings. */
  readonly message?: TextMatcher;
  readonly code?: number;
  /** All warnings, in order. */
  readonly warnings?: readonly TextMatcher[];
  /** All annotations. */
  readonly auditAnnotations?: Readonly<Record<string, TextMatcher>>;
  /** The object after the patch. */
  readonly object?: Source<JsonValue>;
  /** What the object has after the patch, among other things. */
  readonly objectContains?: JsonValue;
  readonly patch?: readonly JsonValue[];
  readonly unchanged?: true;
}

export interface TestCase {
  readonly name: string;
  /** Where it stands in the test file, counted from 1. */
  readonly line: number;
  readonly column: number;
  /** Offset in the test file. */
  readonly at: number;
  /** Instead of the policy's. */
  readonly settings?: Source;
  /** A recorded session that answers host capabilities. */
  readonly session?: FileSource;
  readonly question: Question;
  readonly expect: Expectation;
}

/** One test file. */
export interface TestSuite {
  readonly name: string;
  /** The file, as messages call it. */
  readonly file: string;
  readonly subject: Subject;
  /** Where the subject stands in the file. */
  readonly subjectAt: number;
  readonly cases: readonly TestCase[];
}
