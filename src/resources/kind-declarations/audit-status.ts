// What a policy says about existing objects, in its status.
import { choice, integer, list, object, optional, text, time } from '../schema-builder.ts';
import type { Infer } from '../schema-builder.ts';

/** Kinds of objects that the status of a policy lists; further ones are counted. */
export const MAX_AUDITED_KINDS = 32;
/** Findings that the status of a policy lists. All are in reports. */
export const MAX_LISTED_FINDINGS = 10;
/** Length of a message in it, which contains what users wrote. Characters. */
export const MAX_AUDIT_MESSAGE = 500;

const message = (description: string) => text(description, { maxLength: MAX_AUDIT_MESSAGE });
const count = (description: string) => integer(description, { format: 'int64', minimum: 0 });
const texts = (description: string) => list(description, text('A text.'), { 'x-kubernetes-list-type': 'atomic' });

const COUNTS = object('Numbers of objects.', {
  matched: count('Objects that the policy is for.'),
  passed: count('Objects that it would admit as they are.'),
  failed: count('Objects that it would reject: its findings.'),
  wouldChange: count('Objects that it would change.'),
  skipped: optional(count('Objects that it would reject, were they not excepted.')),
  unjudged: count('Objects on which it gave no verdict.'),
});

const AUDITED_KIND = object('Objects of one kind.', {
  group: optional(text('The API group. Absent for the core group, and for all kinds.')),
  resource: optional(text('The resource, as `pods`. Absent: what is said holds for all kinds.')),
  namespace: optional(text('The namespace. Absent: all that the policy matches.')),
  state: choice(
    '`Scanned`: all were judged. `Pending`: they are yet to be. `Partial`: some were not. `Forbidden`, `Failed`, `NotRead`: they could not be read, or were not. `NotServed`: there is no such kind. `NotAuditable`: existing objects do not say what the policy asks.',
    ['Scanned', 'Pending', 'Partial', 'Forbidden', 'Failed', 'NotRead', 'NotServed', 'NotAuditable'],
  ),
  reason: optional(text('The reason, in CamelCase for programs.', { maxLength: 1024 })),
  message: optional(message('The reason, for users.')),
  missingRule: optional(
    object('The rule of a ClusterRole that the auditor lacks.', {
      apiGroups: texts('API groups.'),
      resources: texts('Resources.'),
      verbs: texts('Verbs.'),
    }),
  ),
  scannedAt: optional(time('When all of them had last been judged.')),
});

const LISTED_FINDING = object('An object that the policy would reject.', {
  apiVersion: text('As in `apps/v1`.'),
  kind: text('As in `Deployment`.'),
  namespace: optional(text('Its namespace.')),
  name: text('Its name.'),
  message: optional(message('Why, shortened.')),
});

/** Written by the auditor, and while none works by the controller, which writes all else of the status. */
export const AUDIT_STATUS = object(
  'What the policy says about existing objects. Written by the auditor, and while none works by the controller.',
  {
    summary: text('The number of findings; with `+` where not all objects are known; `Unknown`; or `NotAuditable`.'),
    state: choice(
      '`Complete`: all objects are judged. `Pending`: the policy is new or changed, and they are yet to be. `Incomplete`: some objects are not known, and more may be rejected than were found. `NotAuditable`: existing objects do not say what the policy asks. `Unknown`: no auditor keeps this current; what else is here was known before `since`.',
      ['Complete', 'Pending', 'Incomplete', 'NotAuditable', 'Unknown'],
    ),
    reason: text('The reason, in CamelCase for programs.', { maxLength: 1024 }),
    message: message('The reason, for users.'),
    since: optional(time('Since when no auditor keeps this current. With the state `Unknown` only.')),
    observedGeneration: optional(
      integer('The `metadata.generation` of the policy that judged. Absent: none has.', {
        format: 'int64',
        minimum: 0,
      }),
    ),
    lastCompleteScan: optional(
      time(
        'Since when all objects are known, at least: it is written with other changes, else once an hour. The metrics of the auditor have the exact time.',
      ),
    ),
    counts: optional(COUNTS),
    kinds: optional(
      list('The kinds of objects, with what is not known of them first.', AUDITED_KIND, {
        maxItems: MAX_AUDITED_KINDS,
        'x-kubernetes-list-type': 'atomic',
      }),
    ),
    omittedKinds: optional(integer('Number of kinds that are not listed.', { minimum: 1 })),
    findings: optional(
      list('Objects that the policy would reject, those that changed last first.', LISTED_FINDING, {
        maxItems: MAX_LISTED_FINDINGS,
        'x-kubernetes-list-type': 'atomic',
      }),
    ),
  },
  // One value, of whoever wrote it last: neither writer leaves fields of the other.
  { 'x-kubernetes-map-type': 'atomic' },
);

export type AuditStatus = Infer<typeof AUDIT_STATUS>;
