export {
  historyCause,
  historyRows,
  keptServing,
  listRevisions,
  revisionBefore,
  revisionModules,
  revisionSince,
  revisionState,
  rollbackCandidate,
} from './kept-revisions.ts';
export type { HistoryRow, RevisionModule } from './kept-revisions.ts';
export { listedCause, listedDigests, listedRevisions, listedRows, listedSpec } from './listed-revisions.ts';
