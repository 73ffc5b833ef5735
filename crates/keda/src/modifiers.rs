//! A formula makes one number of many (spec 4.5).
