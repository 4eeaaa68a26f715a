// An entry of its own for who asks what there is to check, and checks it in another thread.
export { subjectOfDefinition, subjectOfSpec } from './type-check-subject.ts';
