import { contractOf } from '../contract.ts';
import { subject } from './subject.ts';

contractOf(subject);
