package memory

import (
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
)

// maxItem is DynamoDB's limit, in bytes.
const maxItem = 400 << 10

// check returns DynamoDB's error for a write that is invalid whatever the item is.
func check(w item.Write, s contract.Schema) error {
	for name, v := range w.Put {
		if err := checkValue(w, name, v); err != nil {
			return err
		}
	}
	if w.Put != nil && (w.Put.Str(s.PK) != w.PK || s.SK != "" && w.Put.Str(s.SK) != w.SK) {
		return fault.New(fault.Invalid, nil, "%s of %s: the item's key is another", w.Name, w.Ref)
	}
	for name, v := range w.Set {
		if v == nil {
			v = ""
		}
		if err := checkValue(w, name, v); err != nil {
			return err
		}
		if _, twice := w.Add[name]; twice || name == s.PK || name == s.SK {
			return fault.New(fault.Invalid, nil, "%s of %s: attribute %s is part of the key or changed twice", w.Name,
				w.Ref, name)
		}
	}
	for _, all := range w.When {
		if len(all) == 0 {
			return fault.New(fault.Invalid, nil, "%s of %s: an alternative is empty", w.Name, w.Ref)
		}
		for _, c := range all {
			list, isList := c.Value.([]string)
			switch {
			case c.Op == item.Exists || c.Op == item.Missing:
			case c.Op == item.In && isList && len(list) > 0 && len(list) <= 100:
			case c.Op == item.In:
				return fault.New(fault.Invalid, nil, "%s of %s: condition on %s wants 1 to 100 strings", w.Name, w.Ref,
					c.Attr)
			default:
				if err := checkValue(w, c.Attr, c.Value); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func checkValue(w item.Write, name string, v any) error {
	switch v.(type) {
	case string, int64:
		return nil
	}
	return fault.New(fault.Invalid, nil, "%s of %s: attribute %s is a %T, string and int64 are known", w.Name, w.Ref,
		name, v)
}

// fits returns DynamoDB's error for a write that makes an invalid item.
func fits(next item.Item, size int, w item.Write, s *space) error {
	if size > maxItem {
		return fault.New(fault.TooLarge, nil, "%s of %s: the item has %d bytes, %d are allowed", w.Name, w.Ref, size,
			maxItem)
	}
	for _, x := range s.indexes {
		for _, name := range [...]string{x.PK, x.SK} {
			v, ok := next[name]
			if !ok {
				continue
			}
			text, isString := v.(string)
			if wantString := name == x.PK || !x.SKIsNumber; isString != wantString || isString && text == "" {
				return fault.New(fault.Invalid, nil,
					"%s of %s: %s is a key of index %s and has another type or is empty", w.Name, w.Ref, name, x.Name)
			}
		}
	}
	return nil
}
