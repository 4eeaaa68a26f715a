// What a revision changes for existing objects, in its status.
import { choice, integer, object, optional, text, time } from '../schema-builder.ts';
import type { Infer } from '../schema-builder.ts';

/** Length of its message, which may contain what a server answered. Characters. */
export const MAX_PREVIEW_MESSAGE = 500;

const count = (description: string) => integer(description, { format: 'int64', minimum: 0 });

/** Computed by the auditor, which reads objects; all else of the status is written by the controller. */
export const REVISION_PREVIEW = object(
  'What the revision changes for existing objects, compared with the one that served before. Computed by the auditor, once; nothing waits for it.',
  {
    summary: text(
      'How many objects, next pods, rollbacks and deletions it newly rejects; with `+` where not all are known; or `Unknown`.',
    ),
    state: choice(
      '`Complete`: all objects are judged. `Incomplete`: some are not known, and more may be rejected. `Unknown`: nothing is known.',
      ['Complete', 'Incomplete', 'Unknown'],
    ),
    reason: text('The reason, in CamelCase for programs.', { maxLength: 1024 }),
    message: text('What it changes, or why that is not known.', { maxLength: MAX_PREVIEW_MESSAGE }),
    comparedWith: optional(
      integer('The revision that served. Absent: none did, so that all that is rejected is new.', {
        format: 'int64',
        minimum: 1,
      }),
    ),
    computedAt: optional(time('When it was computed. Objects have changed since. Absent: it is not.')),
    counts: optional(
      object('Numbers of what changes.', {
        newlyRejected: count('Objects that are rejected, and were not.'),
        newlyReported: count('Objects that are reported by monitor mode, and were not.'),
        mutationChanged: count('Objects that are changed in another way, are changed, or are no longer.'),
        messageChanged: count('Objects that are rejected for another reason.'),
        notEvaluable: count('Objects on which one of the two gave no verdict.'),
        newlyAdmitted: count('Objects that are admitted, and were not.'),
        nextPods: count('Workloads whose next pods are rejected, and were not.'),
        rollbacks: count('Stored revisions of workloads to which these can no longer be rolled back.'),
        deletions: count('Objects whose finalizers can no longer be removed.'),
        guarded: count('Of what is newly rejected, what the cluster needs to run and to be repaired.'),
      }),
    ),
  },
);

export type RevisionPreview = Infer<typeof REVISION_PREVIEW>;
