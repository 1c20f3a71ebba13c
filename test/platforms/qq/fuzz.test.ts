import { fuzzOf } from '../fuzz.ts';
import { subject } from './subject.ts';

fuzzOf(subject);
